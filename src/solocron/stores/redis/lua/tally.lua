-- How many records of each status some spans have; slots that did not run count each for itself.
-- The number of spans, the scores between which each lies, then the statuses; the counts come back span by span.
local spans, out = tonumber(ARGV[1]), {}
for i = 1, spans do
  local low, high, counts = ARGV[2 * i], ARGV[2 * i + 1], {}
  for _, span in ipairs(call('ZRANGEBYSCORE', SPANS, low, high)) do
    local more, status = string.match(span, '^(%S+) (%S+) ')
    counts[status] = (counts[status] or 0) + tonumber(more)
  end
  for j = 2 * spans + 2, #ARGV do
    out[#out + 1] = call('ZCOUNT', STATUS .. ARGV[j], low, high) + (counts[ARGV[j]] or 0)
  end
end
return out
