// Two threads that compute, one of them called in two ways.
const { Worker, isMainThread, threadId } = require('node:worker_threads');
function price(item) { let sum = 0; for (let step = 0; step < item % 400; step++) sum += Math.sqrt(step * item); return sum; }
function total(items) { let sum = 0; for (const item of items) sum += price(item); return sum; }
function deep(depth, items) { return depth === 0 ? total(items) : deep(depth - 1, items); }
const items = Array.from({ length: 2000 }, (_, place) => place * 7);
function serve(milliseconds) { const end = Date.now() + milliseconds; let sum = 0; while (Date.now() < end) sum += total(items) + deep(10, items); return sum; }
if (isMainThread) { new Worker(__filename); setTimeout(() => serve(60), 20); } else serve(100);
