-- Create-or-get. ARGV: name, holder, fields…
local name, holder = ARGV[4], ARGV[5]
local wanted = fields_at(6)
local have, instead = known(name)
if instead then return instead end
have = promoted(name, have)
if have and not dead(have) then
	if have.dtype ~= wanted.dtype or have.shape ~= wanted.shape then return answer('UNLIKE', name) end
	if have.node ~= NODE then return answer('ELSEWHERE', name) end
	if holder ~= '' then redis.call('SADD', holders(name), holder) end
	count(name)
	return answer('HERE', name)
end
forget(name, have and have.node)
if holder ~= '' then redis.call('SADD', holders(name), holder) end
put_fields(name, wanted)
enlist('of', NODE, name)
return answer('MADE', name)
