-- ARGV: name, holder ('': only look)
local name, holder = ARGV[4], ARGV[5]
local have, instead = living(name)
if instead then return instead end
if have.node ~= NODE then
	if holder == '' or not has_replica(name) then return answer('ELSEWHERE', name) end
	holder = holder_at(NODE, holder)
end
if holder ~= '' then redis.call('SADD', holders(name), holder) end
count(name)
return answer('OK', name)
