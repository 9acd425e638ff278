-- Replaces documents that are still as they were read and appends their records, if the session is live: one commit.
--
-- A script that stops half-way is not undone. So nothing of a document is written before everything that could refuse
-- it has been tried, and the very first write of all is one that a full or read-only server refuses.
--
-- The answer is kept for a while under the client's name and the request's number, so that a client whose connection
-- broke can ask for it; a request that was called off meanwhile does nothing.
local client, number, keep, session, kind = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local reservation, count, position = ARGV[6], tonumber(ARGV[7]), 10
local earliest, latest, gate = ARGV[8], ARGV[9], ARGV[10]

local memory = PREFIX .. 'client:' .. client
local known = call('GET', memory)
if known then
  local last, answer = string.match(known, '^(%d+) (.*)$')
  if tonumber(last) == number then return answer end
  if tonumber(last) > number then return 'void' end
end
-- What was computed without asking for the time holds only if it was about this late.
if earliest ~= '' and (time(0) < tonumber(earliest) or time(0) > tonumber(latest)) then return 'void' end
if session ~= '' and call('HGET', doc_key('session', session), 'l') ~= 'live' then return 'dead' end
if gate ~= '' and session ~= '' and not is_open(gate, session) then return 'shut' end

-- Keys that somebody else has spoiled.
local function spoiled(key, wanted)
  local found = call('TYPE', key).ok
  if found ~= wanted and found ~= 'none' then
    return 'WRONGTYPE the key ' .. key .. ' holds a ' .. found .. ' instead of a ' .. wanted
  end
end

for key, wanted in pairs({
  [COMMITS] = 'string', [NOTIFICATIONS] = 'string', [BLOCKED] = 'hash', [HOLDERS] = 'hash', [RESERVATIONS] = 'hash',
  [NAMES .. kind] = 'zset', [SPANS] = 'zset', [SWEPT] = 'zset',
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

-- Keys by the part that differs: most documents of a batch have the same status, pool and handler.
local status_keys = {}
local function status_key(status)
  local key = status_keys[status]
  if not key then
    key = STATUS .. status
    status_keys[status] = key
  end
  return key
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

-- The log. A record is a place among the arguments; behind it are member, status, time, slots, job and text. Its member
-- in the sets is run and attempt.
local FIELDS = 6

-- Records that the log had already: the number of the document and the record's member, a line each.
local duplicates = {}

-- The keys that only some records need: those of a further attempt, and of a shard.
local function attempts_key(member)
  local attempt = string.sub(member, -8)
  if attempt ~= '00000000' and attempt ~= '00000001' then -- those two are found by their names
    return ATTEMPTS .. string.sub(member, 1, -10), int(tonumber(attempt))
  end
end

local function shards_key(member)
  local group = string.match(member, '^([^#]*)#')
  if group then return SHARDS .. group, string.sub(member, 1, -10) end
end

local function spoiled_record(member, status)
  local attempts, shards = attempts_key(member), shards_key(member)
  return spoiled_set(status_key(status)) or attempts and spoiled(attempts, 'set') or shards and spoiled(shards, 'set')
end

-- Appends the records of a document, all or none: returns which are new, or nothing and the reason. A record that is
-- there already stays as it is.
local function append_records(first, last)
  local new = {}
  for e = first, last, FIELDS do
    local member, log = ARGV[e + 1], LOG .. ARGV[e + 5]
    local wrong = spoiled_record(member, ARGV[e + 2])
    if not wrong then
      if call('SET', RUN .. member, ARGV[e + 6], 'NX') then
        new[e] = true
        local added = pcall_('ZADD', log, ARGV[e + 3], member)
        wrong = type(added) == 'table' and added.err
      else
        wrong = spoiled(RUN .. member, 'string')
      end
    end
    if wrong then
      for back = first, e, FIELDS do
        if new[back] then
          call('DEL', RUN .. ARGV[back + 1])
          pcall_('ZREM', LOG .. ARGV[back + 5], ARGV[back + 1])
        end
      end
      return nil, wrong
    end
  end
  return new
end

-- Lists the new records of document i by status, attempt and shard; notes the others.
local function index_records(i, first, last, new)
  for e = first, last, FIELDS do
    local member, status, at, slots = ARGV[e + 1], ARGV[e + 2], ARGV[e + 3], ARGV[e + 4]
    if new[e] then
      add(status_key(status), at, member)
      if slots ~= '1' then call('ZADD', SPANS, at, int(tonumber(slots) - 1) .. ' ' .. status .. ' ' .. member) end
      local attempts, attempt = attempts_key(member)
      if attempts then call('SADD', attempts, attempt) end
      local shards, run = shards_key(member)
      if shards then call('SADD', shards, run) end
    elseif call('GET', RUN .. member) ~= ARGV[e + 6] then
      duplicates[#duplicates + 1] = '\n=' .. i .. ' ' .. member
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
  if text == '' then return false end
  for _, key in pairs(holders_of(text)) do
    local wrong = spoiled_set(key)
    if wrong then return wrong end
  end
  return false
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

local last_pool, last_handler, last_wrong
local function spoiled_queue(pool, handler)
  if pool ~= last_pool or handler ~= last_handler then
    last_pool, last_handler = pool, handler
    last_wrong = spoiled_set(due_key(pool, handler)) or spoiled_set(heads_key(pool))
  end
  return last_wrong
end

-- Marks come as a number, or empty where they have not changed: then they cost nothing.
local function mark_job(name, marks)
  if marks == '' then return end
  if marks == '0' then call('HDEL', MARKS, name) else call('HSET', MARKS, name, marks) end
end

local function write_job(key, name, old, state, due, holders, marks, fixed, pool, handler)
  mark_job(name, marks)
  local mark = new_version() .. ' ' .. due .. ' ' .. holders
  if fixed then
    call('HSET', key, 'd', fixed, 's', state, 'm', mark, 'p', pool, 'h', handler)
  else
    pool, handler = old[2], old[3]
    call('HSET', key, 's', state, 'm', mark)
  end
  hold(name, old[6], holders)
  local moved = old[5] ~= '' and (old[2] ~= pool or old[3] ~= handler)
  if moved then place(old[2], old[3], name, nil) end
  if due == '' then
    if old[5] ~= '' and not moved then place(pool, handler, name, nil) end
  elseif moved or old[5] ~= due or old[4] ~= '' then
    place(pool, handler, name, due)
  end
end

local function write_session(key, name, fixed, state, life, ended, beats)
  call('HSET', key, 'd', fixed, 's', state, 'm', new_version() .. '  ', 'l', life, 'n', beats)
  if life == 'swept' then call('ZADD', SWEPT, ended == '' and '+inf' or ended, name) end
end

local function write_small(key, name, old, fixed, state, holders, bears)
  call('HSET', key, 'd', fixed, 's', state, 'm', new_version() .. '  ' .. holders)
  if bears ~= '' then call('HSET', key, 'g', bears) end
  hold(name, old[6], holders)
end

local function delete(key, name, old)
  call('DEL', key)
  call('ZREM', NAMES .. kind, name)
  hold(name, old[6], '')
  if old[5] ~= '' then place(old[2], old[3], name, nil) end
  if kind == 'session' then call('ZREM', SWEPT, name) end
  if kind == 'job' then call('HDEL', MARKS, name) end
end

local function spoiled_indices(old, holders, pool, handler)
  local wrong = spoiled_holders(old[6]) or spoiled_holders(holders)
  if not wrong and old[2] ~= '' then wrong = spoiled_queue(old[2], old[3]) end
  if not wrong and pool then wrong = spoiled_queue(pool, handler) end
  return wrong
end

-- How many arguments each way of writing has.
local WIDTH = { log = 0, delete = 0, state = 4, job = 7, session = 5, small = 4 }

local verdicts, reasons, wakes_others = {}, {}, false

local documents = PREFIX .. kind .. ':'

-- Decides one document: a(pplied), c(hanged by others) or b(locked).
local function commit(i)
  local p = position + 4
  local op, name, expected, wakes = ARGV[p - 3], ARGV[p - 2], ARGV[p - 1], ARGV[p]
  local first = p + WIDTH[op] + 1
  local last = first + (tonumber(ARGV[first]) - 1) * FIELDS
  position = last + FIELDS
  local key = documents .. name
  local old = pcall_('HMGET', key, 'm', 'p', 'h', 'b')
  if old.err then return 'b', old.err end
  old = { old[1] or '', old[2] or '', old[3] or '', old[4] or '' }
  if old[1] ~= expected then return 'c' end
  if expected == '' then
    old[5], old[6] = '', ''
  else
    old[5], old[6] = marked(expected)
  end
  local holders = (op == 'state' or op == 'small') and ARGV[p + 3] or op == 'job' and ARGV[p + 4] or ''
  local wrong = spoiled_indices(old, holders, op == 'job' and ARGV[p + 5], ARGV[p + 6])
  local marks = op == 'state' and ARGV[p + 4] or op == 'job' and ARGV[p + 7] or ''
  if not wrong and (marks ~= '' or (op == 'delete' and kind == 'job')) then wrong = spoiled(MARKS, 'hash') end
  if wrong then return 'b', wrong end
  new_version()
  local new
  new, wrong = append_records(first, last)
  if wrong then return 'b', wrong end

  if op == 'state' then
    write_job(key, name, old, ARGV[p + 1], ARGV[p + 2], holders, marks)
  elseif op == 'job' then
    write_job(key, name, old, ARGV[p + 2], ARGV[p + 3], holders, marks, ARGV[p + 1], ARGV[p + 5], ARGV[p + 6])
  elseif op == 'session' then
    write_session(key, name, ARGV[p + 1], ARGV[p + 2], ARGV[p + 3], ARGV[p + 4], ARGV[p + 5])
  elseif op == 'small' then
    write_small(key, name, old, ARGV[p + 1], ARGV[p + 2], holders, ARGV[p + 4])
  elseif op == 'delete' and expected ~= '' then
    delete(key, name, old)
  end
  if expected == '' and op ~= 'log' and op ~= 'delete' then call('ZADD', NAMES .. kind, 0, name) end
  if old[4] ~= '' and op ~= 'log' then -- what was set aside and is written again takes part again
    call('HDEL', key, 'b')
    call('HDEL', BLOCKED, kind .. ':' .. name)
  end
  index_records(i, first, last, new)
  wakes_others = wakes_others or wakes == '1'
  return 'a'
end

for i = 1, count do
  local verdict, reason = commit(i)
  verdicts[i] = verdict
  if reason then reasons[#reasons + 1] = '\n' .. i .. ' ' .. string.gsub(reason, '\n', ' ') end
end

write_due()
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
if reservation ~= '' then call('HDEL', RESERVATIONS, reservation) end -- what was not changed is anybody's again
local notified = wakes_others and notify(client) or '0'
-- A session that is renewed is told whether it holds any job, and what the namespace's document bears on which server:
-- an idle node then need not ask.
local holds, bears = '-', '-'
if kind == 'session' and count == 1 then
  holds = call('EXISTS', HELD .. 'job:' .. ARGV[12])
  bears = string.gsub(call('HGET', doc_key('namespace', 'namespace'), 'g') or '', ' ', '\t') .. '\t' .. server()
end
local answer = table.concat(verdicts) .. ' ' .. notified .. ' ' .. (call('GET', COMMITS) or '0') .. ' ' ..
  (version or '-') .. ' ' .. int(time(0)) .. ' ' .. holds .. ' ' .. bears .. table.concat(reasons) .. table.concat(duplicates)
call('SET', memory, int(number) .. ' ' .. answer, 'PX', keep)
return answer
