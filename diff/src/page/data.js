'use strict';

// What the page shows, read once.

const data = JSON.parse(document.getElementById('data').textContent);
const names = data.tree.names;

/** Row of the table of functions by name. */
const rowOf = new Map(data.functions.map((row) => [row.name, row]));

/** Row of the table of functions by number of the name; the root's number, 0, has none. */
const rowOfName = names.map((name, number) => (number === 0 ? null : rowOf.get(name) ?? null));

const CLASSES = ['user', 'runtime', 'system'];

/** Index into CLASSES by number of the name. */
const classOfName = Uint8Array.from(rowOfName, (row) => (row ? CLASSES.indexOf(row.class) : 0));

const isSignificant = (name) => rowOfName[name]?.significant ?? false;

/** Whether a function differs more than others between single runs, which is all that can be known of them. */
const standsOut = (row) => row.verdict === 'stands_out';

/** Whether a function has a colour. */
const differs = (row) => row.significant || standsOut(row);

/** Verdicts that are conclusive without being significant. */
const KNOWN = new Set(['equivalent', 'compositional']);

/** Whether the figures are times in nanoseconds, of which nobody knows how many samples they are. */
const isTimed = data.base.samples === null;

/** How much a sample of each side counts for a width, by whose widths are shown. */
const SIDES = {
  base: [data.weights[0], 0],
  both: [data.weights[0] / 2, data.weights[1] / 2],
  head: [0, data.weights[1]],
};
