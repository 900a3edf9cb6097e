-- A number pool as one script: the table of states, a hash of every number's state, a list of those idle and up.
-- KEYS[1]: the pool. ARGV[1]: the event. ARGV[2]: the number; a call may do without.
-- Returns '1' where the table says "ok" and '0' where it says "fail" or "error"; a call: the number, or nil.
local states, idle = KEYS[1] .. ':numstate', KEYS[1] .. ':idle:up'
local event, number = ARGV[1], ARGV[2]

if event == 'call' and not number then
  number = redis.call('LPOP', idle)
  if number then redis.call('HSET', states, number, 'busy+up') end
  return number
end

local state = redis.call('HGET', states, number)

if event == 'call' then
  if state ~= 'idle+up' then return false end
  redis.call('LREM', idle, 1, number)
  redis.call('HSET', states, number, 'busy+up')
  return number
elseif event == 'hangup' then
  if state == 'busy+up' then
    redis.call('HSET', states, number, 'idle+up')
    redis.call('RPUSH', idle, number)
    return '1'
  elseif state == 'busy+down' then
    redis.call('HSET', states, number, 'idle+down')
    return '1'
  end
  return '0'
elseif event == 'add' then
  if not state then redis.call('HSET', states, number, 'idle+down') end
  return '1'
elseif event == 'del' then
  if state == 'idle+up' then redis.call('LREM', idle, 1, number) end
  if state then redis.call('HDEL', states, number) end
  return '1'
elseif not state then
  return '0'
elseif event == 'reg' then
  if state == 'idle+down' then
    redis.call('HSET', states, number, 'idle+up')
    redis.call('RPUSH', idle, number)
  elseif state == 'busy+down' then
    redis.call('HSET', states, number, 'busy+up')
  end
  return '1'
elseif event == 'unreg' then
  if state == 'idle+up' then
    redis.call('HSET', states, number, 'idle+down')
    redis.call('LREM', idle, 1, number)
  elseif state == 'busy+up' then
    redis.call('HSET', states, number, 'busy+down')
  end
  return '1'
end
return redis.error_reply('ERR unknown event')
