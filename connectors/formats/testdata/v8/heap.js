// Keeps what three functions allocate; one of them recurses, so that its stacks are deep.
const kept = (globalThis.kept = []);
class Basket { constructor(items) { this.items = items; } total() { return this.items.reduce((sum, item) => sum + item.price, 0); } }
function item(number) { return { number, price: number % 7, text: 'item ' + number }; }
function fill(size) { const items = []; for (let i = 0; i < size; i++) items.push(item(i)); return new Basket(items); }
function deep(depth) { return depth === 0 ? fill(500) : deep(depth - 1); }
function garbage() { let sum = 0; for (let i = 0; i < 300; i++) sum += fill(100).total(); return sum; }
for (let round = 0; round < 6; round++) { kept.push(fill(500)); kept.push(deep(30)); garbage(); }
console.log(kept.length);
