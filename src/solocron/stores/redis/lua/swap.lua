-- Replaces documents that are still as they were read, each with its log entries, if the session is live: one commit.
--
-- A script that stops half-way is not undone. So nothing of a document is written before everything that could refuse
-- it has been tried, and the very first write of all is one that a full or read-only server refuses.
--
-- The answer is kept for a while under the client's name and the request's number, so that a client whose connection
-- broke can ask for it; a request that was called off meanwhile does nothing.
local client, number, keep, session, kind = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local release, count, position = ARGV[6] == '1', tonumber(ARGV[7]), 7

local memory = PREFIX .. 'client:' .. client
local known = call('GET', memory)
if known then
  local last, answer = string.match(known, '^(%d+) (.*)$')
  if tonumber(last) == number then return answer end
  if tonumber(last) > number then return 'void' end
end
if session ~= '' and call('HGET', doc_key('session', session), 'l') ~= 'live' then return 'dead' end

-- Keys that somebody else has spoiled.
local function spoiled(key, wanted)
  local found = call('TYPE', key).ok
  if found ~= wanted and found ~= 'none' then
    return 'WRONGTYPE the key ' .. key .. ' holds a ' .. found .. ' instead of a ' .. wanted
  end
end

for key, wanted in pairs({
  [COMMITS] = 'string', [RINGS] = 'string', [BLOCKED] = 'hash', [HOLDERS] = 'hash', [OFFERED] = 'zset',
  [NAMES .. kind] = 'zset', [SPANS] = 'zset', [STATUS .. 'running'] = 'zset', [SWEEP] = 'zset', [SWEPT] = 'zset',
}) do
  local wrong = spoiled(key, wanted)
  if wrong then return redis.error_reply(wrong) end
end

local checked = {}
local function spoiled_set(key)
  local wrong = checked[key]
  if wrong == nil then
    wrong = spoiled(key, 'zset') or false
    checked[key] = wrong
  end
  return wrong
end

local version
local function new_version()
  if not version then
    -- Unique for ever: the time keeps it apart from one that was lost with the last writes of a crashed server.
    version = int(call('INCR', COMMITS)) .. '.' .. call('TIME')[2]
  end
  return version
end

-- Members of sorted sets are gathered, and written in few commands at the end.
local gathered = { ZADD = {}, ZREM = {} }
local function list_of(command, key)
  local list = gathered[command][key]
  if not list then
    list = {}
    gathered[command][key] = list
  end
  return list
end

local function add(key, score, member)
  local list = list_of('ZADD', key)
  list[#list + 1] = score
  list[#list + 1] = member
end

local function remove(key, member)
  local list = list_of('ZREM', key)
  list[#list + 1] = member
end

-- The log. A record is five parts, a line each: status, times and number of slots; what it was opened with; what it
-- was closed with; its progress; the job, whose name may hold anything. Its member in the sets is run and attempt.

local function read_entries()
  local entries = {}
  for i = 1, tonumber(ARGV[position + 1]) do
    local p = position + 7 * i - 6
    entries[i] = {
      op = ARGV[p + 1], member = ARGV[p + 2], status = ARGV[p + 3], at = ARGV[p + 4], slots = ARGV[p + 5],
      job = ARGV[p + 6], text = ARGV[p + 7],
    }
  end
  position = position + 1 + 7 * #entries
  return entries
end

local function span(slots, status, member)
  return int(tonumber(slots) - 1) .. ' ' .. status .. ' ' .. member
end

-- Opens the new records, all or none; says why if none.
local function open_records(entries)
  local done = {}
  local function undo(reason)
    for _, e in ipairs(done) do
      call('DEL', RUN .. e.member)
      call('ZREM', LOG .. e.job, e.member)
    end
    return reason
  end
  for _, e in ipairs(entries) do
    local wrong = spoiled_set(STATUS .. e.status)
    if wrong then return undo(wrong) end
    if e.op == 'open' then
      local listed = pcall_('ZADD', LOG .. e.job, 'NX', e.at, e.member)
      if type(listed) == 'table' then return undo(listed.err) end
      -- Under a key that holds something else it is refused as well.
      if not call('SET', RUN .. e.member, e.text, 'NX') then
        if listed == 1 then call('ZREM', LOG .. e.job, e.member) end
        return undo('duplicate record: ' .. string.gsub(e.member, ' 0*(%d+)$', ' attempt %1') .. ' is in the log already')
      end
      done[#done + 1] = e
    else
      local stored = pcall_('GET', RUN .. e.member)
      if type(stored) == 'table' then return undo(stored.err) end
      e.stored = stored
    end
  end
end

-- Closes a running record, or notes its progress; the rest stays as it was opened.
local function change_record(e)
  local stored = e.stored or call('GET', RUN .. e.member)
  local at, slots, rest = string.match(stored or '', '^running (%S+) %S+ (%S+)\n()')
  if not at then return end
  local cut = string.find(stored, '\n\n', rest, true)
  local opened, noted = string.sub(stored, rest, cut), string.sub(stored, cut + 1)
  if e.op == 'note' then
    local job = string.match(noted, '^\n[^\n]*(\n.*)$')
    call('SET', RUN .. e.member, string.sub(stored, 1, cut) .. '\n' .. e.text .. job)
    return
  end
  -- The text of a close is its end and what it was closed with, in two lines.
  local finished, closed = string.match(e.text, '^(%S+)\n(.*)$')
  local facts = e.status .. ' ' .. at .. ' ' .. finished .. ' ' .. slots .. '\n'
  call('SET', RUN .. e.member, facts .. opened .. closed .. noted)
  remove(STATUS .. 'running', e.member)
  add(STATUS .. e.status, at, e.member)
  if slots ~= '1' then
    call('ZREM', SPANS, span(slots, 'running', e.member))
    call('ZADD', SPANS, at, span(slots, e.status, e.member))
  end
end

local function write_entries(entries)
  for _, e in ipairs(entries) do
    if e.op == 'open' then
      add(STATUS .. e.status, e.at, e.member)
      if e.slots ~= '1' then call('ZADD', SPANS, e.at, span(e.slots, e.status, e.member)) end
      local attempt = string.sub(e.member, -8)
      if attempt ~= '00000000' and attempt ~= '00000001' then -- those two are found by their names
        call('SADD', ATTEMPTS .. string.sub(e.member, 1, -10), int(tonumber(attempt)))
      end
    else
      change_record(e)
    end
  end
end

-- Holders come as one text, each behind its length; most documents of a batch have the same.
local parsed = { [''] = {} }
local function holders_of(text)
  local found = parsed[text]
  if not found then
    found = {}
    local at = 1
    while at <= #text do
      local _, stop, size = string.find(text, '^(%d+):', at)
      found[string.sub(text, stop + 1, stop + size)] = HELD .. kind .. ':' .. string.sub(text, stop + 1, stop + size)
      at = stop + size + 1
    end
    parsed[text] = found
  end
  return found
end

local function spoiled_holders(text)
  for _, key in pairs(holders_of(text)) do
    local wrong = spoiled_set(key)
    if wrong then return wrong end
  end
end

local function hold(name, old, new)
  if old == new then return end
  local before, after = holders_of(old), holders_of(new)
  for holder, key in pairs(before) do
    if not after[holder] then remove(key, name) end
  end
  for holder, key in pairs(after) do
    if not before[holder] then add(key, 0, name) end
  end
end

-- The three kinds of documents. `old` is mark, pool, handler, set aside, due instant, holders: empty where there is none.

local queued = {}
local function spoiled_queue(pool, handler)
  local id = #pool .. ':' .. pool .. handler
  if queued[id] == nil then
    queued[id] = spoiled_set(due_key(pool, handler)) or spoiled_set(heads_key(pool)) or false
  end
  return queued[id]
end

local function write_job(key, name, old, d)
  local pool, handler = d.pool or old[2], d.handler or old[3]
  local mark = new_version() .. ' ' .. d.due .. ' ' .. d.holders
  if d.fixed then
    call('HSET', key, 'd', d.fixed, 's', d.state, 'm', mark, 'p', pool, 'h', handler)
  else
    call('HSET', key, 's', d.state, 'm', mark)
  end
  hold(name, old[6], d.holders)
  local moved = old[5] ~= '' and (old[2] ~= pool or old[3] ~= handler)
  if moved then place(old[2], old[3], name, nil) end
  if d.due == '' then
    if old[5] ~= '' and not moved then place(pool, handler, name, nil) end
  elseif moved or old[5] ~= d.due or old[4] ~= '' then
    place(pool, handler, name, d.due)
  end
end

local function write_session(key, name, d)
  call('HSET', key, 'd', d.fixed, 's', d.state, 'm', new_version() .. '  ', 'l', d.life)
  if d.life == 'swept' then
    call('ZREM', SWEEP, name)
    call('ZADD', SWEPT, d.ended == '' and '+inf' or d.ended, name)
  else
    call('ZREM', SWEPT, name)
    call('ZADD', SWEEP, d.life == 'live' and d.expires or '-inf', name)
  end
end

local function write_note(key, name, old, d)
  call('HSET', key, 'd', d.fixed, 's', d.state, 'm', new_version() .. '  ' .. d.holders)
  hold(name, old[6], d.holders)
end

local function delete(key, name, old)
  call('DEL', key)
  call('ZREM', NAMES .. kind, name)
  hold(name, old[6], '')
  if old[5] ~= '' then place(old[2], old[3], name, nil) end
  if kind == 'session' then
    call('ZREM', SWEEP, name)
    call('ZREM', SWEPT, name)
  end
end

local function spoiled_indices(old, d)
  local wrong = spoiled_holders(old[6]) or (d.holders and spoiled_holders(d.holders))
  if not wrong and old[2] ~= '' then wrong = spoiled_queue(old[2], old[3]) end
  if not wrong and d.pool then wrong = spoiled_queue(d.pool, d.handler) end
  return wrong
end

local columns = {
  log = {}, delete = {}, state = { 'state', 'due', 'holders' },
  job = { 'fixed', 'state', 'due', 'holders', 'pool', 'handler' },
  session = { 'fixed', 'state', 'life', 'expires', 'ended' },
  note = { 'fixed', 'state', 'holders' },
}

local verdicts, reasons, names, rings = {}, {}, {}, false

-- Decides one document: a(pplied), c(hanged by others) or b(locked).
local function commit(i)
  local op, name, expected, wakes = ARGV[position + 1], ARGV[position + 2], ARGV[position + 3], ARGV[position + 4]
  position = position + 4
  local d = {}
  for _, column in ipairs(columns[op]) do
    position = position + 1
    d[column] = ARGV[position]
  end
  local entries = read_entries()
  names[i] = name
  local key = doc_key(kind, name)
  local old = pcall_('HMGET', key, 'm', 'p', 'h', 'b')
  if old.err then return 'b', old.err end
  for field = 1, 4 do old[field] = old[field] or '' end
  if old[1] ~= expected then return 'c' end
  old[5], old[6] = marked(old[1])
  local wrong = spoiled_indices(old, d)
  if wrong then return 'b', wrong end
  new_version()
  wrong = open_records(entries)
  if wrong then return 'b', wrong end

  if op == 'state' or op == 'job' then
    write_job(key, name, old, d)
  elseif op == 'session' then
    write_session(key, name, d)
  elseif op == 'note' then
    write_note(key, name, old, d)
  elseif op == 'delete' and expected ~= '' then
    delete(key, name, old)
  end
  if op ~= 'log' and op ~= 'delete' and expected == '' then call('ZADD', NAMES .. kind, 0, name) end
  if old[4] ~= '' and op ~= 'log' then -- what was set aside and is written again takes part again
    call('HDEL', key, 'b')
    call('HDEL', BLOCKED, kind .. ':' .. name)
  end
  write_entries(entries)
  rings = rings or wakes == '1'
  return 'a'
end

for i = 1, count do
  local verdict, reason = commit(i)
  verdicts[i] = verdict
  if reason then reasons[#reasons + 1] = '\n' .. i .. ' ' .. string.gsub(reason, '\n', ' ') end
end

settle_due()
for _, command in ipairs({ 'ZADD', 'ZREM' }) do
  for key, list in pairs(gathered[command]) do
    local changed = many(command, key, list)
    if changed > 0 and string.sub(key, 1, #HELD) == HELD then
      local holder = string.sub(key, #HELD + #kind + 2)
      if call('HINCRBY', HOLDERS, holder, command == 'ZADD' and changed or -changed) <= 0 then
        call('HDEL', HOLDERS, holder)
      end
    end
  end
end
if release then
  for i = position + 1, #ARGV do names[#names + 1] = ARGV[i] end
  many('ZREM', OFFERED, names)
end
local rang = rings and ring(client) or '0'
local answer = table.concat(verdicts) .. ' ' .. rang .. ' ' .. (call('GET', COMMITS) or '0') .. table.concat(reasons)
call('SET', memory, int(number) .. ' ' .. answer, 'PX', keep)
return answer
