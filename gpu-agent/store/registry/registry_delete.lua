-- ARGV: name, holder, '1': not where others than the holder hold it
local name, holder, refuse = ARGV[4], ARGV[5], ARGV[6]
local have, instead = known(name)
if instead then return instead end
if not have then return {'MISSING'} end
have = promoted(name, have)
if not dead(have) then
	if have.node ~= NODE then return answer('ELSEWHERE', name) end
	local others = redis.call('SCARD', holders(name)) - redis.call('SISMEMBER', holders(name), holder)
	if refuse == '1' and others > 0 then return answer('HELD', name) end
end
forget(name, have.node)
return {'OK'}
