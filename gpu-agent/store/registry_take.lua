-- ARGV: name, holder ('': only look)
local name, holder = ARGV[4], ARGV[5]
if strange() then return {'REFILL'} end
local have, edited = read(name)
if spoilt(name, have, edited) then return {'EDITED'} end
if not have then return {'MISSING'} end
have = settle(name, have)
if dead(have) then return answer('MISSING', name) end
if have.node ~= NODE then
	if holder == '' or not has_replica(name) then return answer('ELSEWHERE', name) end
	holder = holder_at(NODE, holder)
end
if holder ~= '' then redis.call('SADD', holders(name), holder) end
count(name)
return answer('OK', name)
