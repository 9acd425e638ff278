-- Removes records from before an instant, some at a time, and swept sessions that ended before it.
local before, limit = ARGV[1], tonumber(ARGV[2])
local removed = 0

local function remove(member, status)
  call('ZREM', STATUS .. status, member)
  local record = call('GET', RUN .. member)
  if not record then return end
  local slots, job = string.match(record, '^%S+ %S+ %S+ (%S+)\n[^\n]*\n(.*)$')
  local run, attempt = string.sub(member, 1, -10), tonumber(string.sub(member, -8))
  call('DEL', RUN .. member)
  if attempt > 1 then call('SREM', ATTEMPTS .. run, int(attempt)) end
  local group = string.match(run, '^([^#]*)#')
  if group and call('EXISTS', RUN .. run .. ' 00000000', RUN .. run .. ' 00000001', ATTEMPTS .. run) == 0 then
    call('SREM', SHARDS .. group, run)
  end
  call('ZREM', LOG .. job, member)
  if slots ~= '1' then call('ZREM', SPANS, int(tonumber(slots) - 1) .. ' ' .. status .. ' ' .. member) end
  removed = removed + 1
end

for i = 3, #ARGV do
  while removed < limit do
    local size = math.min(limit - removed, 200)
    local page = call('ZRANGEBYSCORE', STATUS .. ARGV[i], '-inf', '(' .. before, 'LIMIT', 0, size)
    if #page == 0 then break end
    for _, member in ipairs(page) do remove(member, ARGV[i]) end
  end
end

for _, name in ipairs(call('ZRANGEBYSCORE', SWEPT, '-inf', '(' .. before, 'LIMIT', 0, 1000)) do
  call('DEL', doc_key('session', name))
  call('ZREM', NAMES .. 'session', name)
  call('ZREM', SWEPT, name)
end
return removed
