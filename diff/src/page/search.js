// Search by name: a regular expression that ignores case unless it has a capital letter.

/** Whether each name matches, by its number; null without a search. A fault of the pattern is its message. */
function matching(query) {
  if (query === '') return { matches: null, fault: '' };
  let pattern;
  try {
    pattern = new RegExp(query, /\p{Lu}/u.test(query) ? 'u' : 'iu');
  } catch (fault) {
    return { matches: new Uint8Array(names.length), fault: fault.message };
  }
  const matches = Uint8Array.from(names, (name, number) => (number > 0 && pattern.test(name) ? 1 : 0));
  return { matches, fault: '' };
}

/** Share of the samples of each side whose stack has a match, each sample once; and how many functions match. */
function matchedShare(matches) {
  let base = 0;
  let head = 0;
  for (let node = 1; node < recorded.size;) {
    if (!matches[recorded.name[node]]) {
      node++;
      continue;
    }
    base += recorded.base[node];
    head += recorded.head[node];
    node = recorded.end[node];
  }
  const share = (part, whole) => (whole > 0 ? part / whole : 0);
  return {
    base: share(base, recorded.base[0]),
    head: share(head, recorded.head[0]),
    functions: matches.reduce((sum, match) => sum + match, 0),
  };
}

/** The text as a pattern that matches it and nothing else. */
const literally = (text) => `^${text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')}$`;
