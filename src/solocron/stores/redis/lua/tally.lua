-- How many records of each status were appended since an instant; slots that did not run count each for itself.
local since, counts = ARGV[1], {}
for i = 2, #ARGV do counts[ARGV[i]] = call('ZCOUNT', STATUS .. ARGV[i], since, '+inf') end
for _, span in ipairs(call('ZRANGEBYSCORE', SPANS, since, '+inf')) do
  local more, status = string.match(span, '^(%S+) (%S+) ')
  counts[status] = (counts[status] or 0) + tonumber(more)
end
local out = {}
for i = 2, #ARGV do out[i - 1] = counts[ARGV[i]] end
return out
