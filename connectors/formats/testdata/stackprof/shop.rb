# Three methods that take time, one of them called by two others and by itself.
require 'stackprof'
require 'json'

class Basket
  def initialize(size) = @items = (1..size).to_a
  def total = @items.sum { |item| price(item) }
  def price(item) = (1..item % 40).inject(0) { |sum, step| sum + step * step }
  def deep(depth) = depth.zero? ? total : deep(depth - 1)
end

def serve(rounds)
  basket = Basket.new(400)
  rounds.times { basket.total; basket.deep(6) }
end

mode, raw, file = ARGV
results = StackProf.run(mode: mode.to_sym, raw: raw == 'raw', interval: mode == 'object' ? 100 : 1000) { serve(mode == 'object' ? 4 : 60) }
File.write(file, JSON.generate(results, max_nesting: false))
File.binwrite(file.sub('.json', '.dump'), Marshal.dump(results))
