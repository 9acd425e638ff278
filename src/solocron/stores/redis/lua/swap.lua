-- Replaces documents that are still as they were read, each with its log entries, if the session is live: one commit.
--
-- Nothing of a document is written before everything that could refuse it has been looked at, because a script that
-- stops half-way is not undone. The answer is kept for a while under the client's name and the request's number, so
-- that a client whose connection broke can ask for it; a request that was called off meanwhile does nothing.
local client, number, keep, session, kind, release, count = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5], ARGV[6] == '1', tonumber(ARGV[7])
local memory = PREFIX .. 'client:' .. client
local known = call('GET', memory)
if known then
  local last, answer = string.match(known, '^(%d+) (.*)$')
  if tonumber(last) == number then return answer end
  if tonumber(last) > number then return 'void' end
end
if session ~= '' and call('HGET', doc_key('session', session), 'l') ~= 'live' then return 'dead' end

local position = 7
local function take()
  position = position + 1
  return ARGV[position]
end

-- Keys that others may have spoiled are looked at once.
local types = {}
local function refuse_type(key, wanted)
  local found = types[key]
  if not found then
    found = call('TYPE', key).ok
    types[key] = found
  end
  if found ~= wanted and found ~= 'none' then
    return 'WRONGTYPE the key ' .. key .. ' holds a ' .. found .. ' instead of a ' .. wanted
  end
end

local version
local function new_version()
  if not version then
    -- Unique for ever: the time keeps it apart from one that was lost with the last writes of a crashed server.
    version = int(call('INCR', COMMITS)) .. '.' .. call('TIME')[2]
  end
  return version
end

-- Index entries are gathered and written in few commands at the end.
local lists = {}
local function gather(command, key, ...)
  local slot = command .. ' ' .. key
  local list = lists[slot]
  if not list then
    list = { command = command, key = key }
    lists[slot] = list
  end
  for _, value in ipairs({ ... }) do list[#list + 1] = value end
end

local opened = {}

-- A record is four lines: status, times, number of slots and job; what it was opened with; what it was closed with;
-- its progress.
local function parse(record)
  local r = {}
  r.status, r.at, r.finished, r.slots, r.job, r.open, r.close, r.progress =
    string.match(record, '^(%S+) (%S+) (%S+) (%S+) ([^\n]*)\n([^\n]*)\n([^\n]*)\n(.*)$')
  return r
end

local function text(r)
  return table.concat({ r.status, r.at, r.finished, r.slots, r.job }, ' ') .. '\n' .. r.open .. '\n' .. r.close .. '\n' .. r.progress
end

local function read_entries()
  local entries = {}
  for i = 1, tonumber(take()) do
    local e = { op = take(), run = take(), attempt = take(), status = take(), at = take(), finished = take(), slots = take(), job = take(), text = take() }
    e.member = e.run .. ' ' .. string.rep('0', 8 - #e.attempt) .. e.attempt
    entries[i] = e
  end
  return entries
end

-- Why these entries cannot be written, if they cannot.
local function refuse_entries(entries)
  local made = {}
  for _, e in ipairs(entries) do
    local stored = pcall_('HGET', RUN .. e.run, e.attempt)
    if type(stored) == 'table' then return stored.err end
    e.stored = stored
    local wrong = refuse_type(LOG .. e.job, 'zset') or refuse_type(STATUS .. e.status, 'zset') or refuse_type(STATUS .. 'running', 'zset') or refuse_type(SPANS, 'zset')
    if wrong then return wrong end
    if e.op == 'open' then
      if stored or opened[e.member] or made[e.member] then
        return 'duplicate record: ' .. e.run .. ' attempt ' .. e.attempt .. ' is in the log already'
      end
      made[e.member] = true
    end
  end
  for member in pairs(made) do opened[member] = true end
end

local function span(slots, status, member)
  return int(tonumber(slots) - 1) .. ' ' .. status .. ' ' .. member
end

local function write_entries(entries)
  local made = {}
  for _, e in ipairs(entries) do
    if e.op == 'open' then
      local r = { status = e.status, at = e.at, finished = e.finished, slots = e.slots, job = e.job, open = e.text, close = '', progress = '' }
      made[e.member] = r
      call('HSET', RUN .. e.run, e.attempt, text(r))
      call('ZADD', LOG .. e.job, r.at, e.member)
      gather('ZADD', STATUS .. r.status, r.at, e.member)
      if r.slots ~= '1' then call('ZADD', SPANS, r.at, span(r.slots, r.status, e.member)) end
    else
      local r = made[e.member] or (e.stored and parse(e.stored))
      if r and r.status == 'running' then
        made[e.member] = r
        if e.op == 'note' then
          r.progress = e.text
        else
          r.status, r.finished, r.close = e.status, e.finished, e.text
          gather('ZREM', STATUS .. 'running', e.member)
          gather('ZADD', STATUS .. r.status, r.at, e.member)
          if r.slots ~= '1' then
            call('ZREM', SPANS, span(r.slots, 'running', e.member))
            call('ZADD', SPANS, r.at, span(r.slots, r.status, e.member))
          end
        end
        call('HSET', RUN .. e.run, e.attempt, text(r))
      end
    end
  end
end

local function each(holders, f)
  for name in string.gmatch(holders or '', '[^\n]+') do f(name) end
end

-- Moves a document from its old holders to its new ones.
local function hold(name, old, new)
  if (old or '') == new then return end
  local stays = {}
  each(new, function(holder) stays[holder] = true end)
  each(old, function(holder)
    if not stays[holder] then gather('ZREM', HELD .. kind .. ':' .. holder, name) end
    stays[holder] = nil
  end)
  for holder in pairs(stays) do gather('ZADD', HELD .. kind .. ':' .. holder, 0, name) end
end

-- A document that was set aside and is written again takes part again.
local function let_in(key, name, aside)
  if aside then
    call('HDEL', key, 'b')
    call('HDEL', BLOCKED, kind .. ':' .. name)
  end
end

local function write_job(key, old, d)
  local pool, handler = d.c, d.d
  if d.fixed == '' then
    pool, handler = old[2], old[3]
    call('HSET', key, 's', d.state, 'v', new_version(), 'u', d.a, 'g', d.b)
  else
    call('HSET', key, 'd', d.fixed, 's', d.state, 'v', new_version(), 'u', d.a, 'g', d.b, 'p', pool, 'h', handler)
  end
  hold(d.name, old[5], d.b)
  local moved = old[1] and (old[2] ~= pool or old[3] ~= handler)
  if moved and old[4] ~= '' then place(old[2], old[3], d.name, nil) end
  if d.a ~= '' then
    if moved or old[4] ~= d.a or old[6] then place(pool, handler, d.name, d.a) end
  elseif old[1] and not moved and old[4] ~= '' then
    place(pool, handler, d.name, nil)
  end
end

local function write_session(key, d)
  if d.fixed ~= '' then call('HSET', key, 'd', d.fixed) end
  call('HSET', key, 's', d.state, 'v', new_version(), 'l', d.a)
  if d.a == 'swept' then
    call('ZREM', SWEEP, d.name)
    call('ZADD', SWEPT, d.c == '' and '+inf' or d.c, d.name)
  else
    call('ZREM', SWEPT, d.name)
    call('ZADD', SWEEP, d.a == 'live' and d.b or '-inf', d.name)
  end
end

local function write_note(key, old, d)
  if d.fixed ~= '' then call('HSET', key, 'd', d.fixed) end
  call('HSET', key, 's', d.state, 'v', new_version(), 'g', d.b)
  hold(d.name, old[5], d.b)
end

local function delete(key, name, old)
  if not old[1] then return end
  new_version()
  call('DEL', key)
  call('ZREM', NAMES .. kind, name)
  hold(name, old[5], '')
  if kind == 'job' and old[4] ~= '' then place(old[2], old[3], name, nil) end
  if kind == 'session' then
    call('ZREM', SWEEP, name)
    call('ZREM', SWEPT, name)
  end
end

local function refuse_indices(d, old)
  local wrong = refuse_type(NAMES .. kind, 'zset') or refuse_type(COMMITS, 'string') or refuse_type(BLOCKED, 'hash') or refuse_type(HOLDERS, 'hash')
  local function look(holder) wrong = wrong or refuse_type(HELD .. kind .. ':' .. holder, 'zset') end
  if kind ~= 'session' then
    each(old[5], look)
    each(d.b, look)
  else
    wrong = wrong or refuse_type(SWEEP, 'zset') or refuse_type(SWEPT, 'zset')
  end
  if kind == 'job' then
    if old[2] then wrong = wrong or refuse_type(due_key(old[2], old[3]), 'zset') or refuse_type(heads_key(old[2]), 'zset') end
    if d.c and d.c ~= '' then wrong = wrong or refuse_type(due_key(d.c, d.d), 'zset') or refuse_type(heads_key(d.c), 'zset') end
  end
  return wrong
end

local verdicts, reasons, rings = {}, {}, false

local function refused(i, reason)
  verdicts[i] = 'b'
  reasons[#reasons + 1] = '\n' .. i .. ' ' .. string.gsub(reason, '\n', ' ')
end

local function commit(i)
  local d = { op = take(), name = take(), version = take(), rings = take() == '1' }
  if d.op == 'write' then
    d.fixed, d.state, d.a, d.b, d.c, d.d = take(), take(), take(), take(), take(), take()
  end
  local entries = read_entries()
  local key = doc_key(kind, d.name)
  local old = pcall_('HMGET', key, 'v', 'p', 'h', 'u', 'g', 'b')
  if old.err then return refused(i, old.err) end
  if (old[1] or '') ~= d.version then
    verdicts[i] = 'c'
    return
  end
  local wrong = refuse_indices(d, old) or refuse_entries(entries)
  if wrong then return refused(i, wrong) end
  old[4] = old[4] or ''
  verdicts[i] = 'a'
  rings = rings or d.rings
  if d.op == 'delete' then
    delete(key, d.name, old)
  elseif d.op == 'write' then
    if kind == 'job' then
      write_job(key, old, d)
    elseif kind == 'session' then
      write_session(key, d)
    else
      write_note(key, old, d)
    end
    if not old[1] then call('ZADD', NAMES .. kind, 0, d.name) end
  end
  if d.op ~= 'log' then let_in(key, d.name, old[6]) end
  write_entries(entries)
end

local names = {}
for i = 1, count do
  names[i] = ARGV[position + 2]
  commit(i)
end

settle_heads()
for _, adds in ipairs({ 'ZADD', 'ZREM' }) do
  for _, list in pairs(lists) do
    if list.command == adds then
      local changed = many(adds, list.key, list)
      if string.sub(list.key, 1, #HELD) == HELD and changed > 0 then
        local holder = string.match(list.key, '^[^:]+:(.*)$', #HELD + 1)
        if call('HINCRBY', HOLDERS, holder, adds == 'ZADD' and changed or -changed) <= 0 then
          call('HDEL', HOLDERS, holder)
        end
      end
    end
  end
end
if release then
  for i = position + 1, #ARGV do names[#names + 1] = ARGV[i] end
  if #names > 0 then many('ZREM', OFFERED, names) end
end
if rings then ring(client) end
local answer = table.concat(verdicts) .. ' ' .. (rings and '1' or '0') .. ' ' .. (call('GET', COMMITS) or '0') .. table.concat(reasons)
call('SET', memory, int(number) .. ' ' .. answer, 'PX', keep)
return answer
