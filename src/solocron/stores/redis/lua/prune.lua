-- Removes records that ended before an instant, some at a time, and swept sessions that ended before it.
local before, limit = ARGV[1], tonumber(ARGV[2])
local removed = 0

-- Whether the record is gone; one that was recorded before but ended later stays.
local function remove(member, status)
  local record = call('GET', RUN .. member)
  if record then
    local finished, slots, job = string.match(record, '^%S+ %S+ (%S+) (%S+)\n[^\n]*\n[^\n]*\n[^\n]*\n(.*)$')
    if finished == '-' or tonumber(finished) >= tonumber(before) then return false end
    local run, attempt = string.sub(member, 1, -10), tonumber(string.sub(member, -8))
    call('DEL', RUN .. member)
    if attempt > 1 then call('SREM', ATTEMPTS .. run, int(attempt)) end
    call('ZREM', LOG .. job, member)
    if slots ~= '1' then call('ZREM', SPANS, int(tonumber(slots) - 1) .. ' ' .. status .. ' ' .. member) end
    removed = removed + 1
  end
  call('ZREM', STATUS .. status, member)
  return true
end

for i = 3, #ARGV do
  local kept = 0
  while removed < limit and kept < 10000 do
    local size = math.min(limit - removed, 200)
    local page = call('ZRANGEBYSCORE', STATUS .. ARGV[i], '-inf', '(' .. before, 'LIMIT', kept, size)
    if #page == 0 then break end
    for _, member in ipairs(page) do
      if not remove(member, ARGV[i]) then kept = kept + 1 end
    end
  end
end

for _, name in ipairs(call('ZRANGEBYSCORE', SWEPT, '-inf', '(' .. before, 'LIMIT', 0, 1000)) do
  call('DEL', doc_key('session', name))
  call('ZREM', NAMES .. 'session', name)
  call('ZREM', SWEPT, name)
end
return removed
