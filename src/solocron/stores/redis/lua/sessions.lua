-- The names of the sessions that are not swept, and of the swept ones that ended since an instant, in no order.
local names = call('ZDIFF', 2, NAMES .. 'session', SWEPT)
if ARGV[1] ~= '' then
  for _, name in ipairs(call('ZRANGEBYSCORE', SWEPT, ARGV[1], '+inf')) do names[#names + 1] = name end
end
return names
