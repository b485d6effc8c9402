/* SPDX-License-Identifier: Apache-2.0
 *
 * Replicas of a sealed tensor (gpu-agent/store/replicas.c and the Lua scripts): three agents, one
 * name, of which agent 0 is the first.  The others get tickets, copy, and enter what they have;
 * any of them dies, lapses though it lives, comes back with what it has or with nothing, loses
 * its card, and Redis is emptied.  A script is one step, a copy is many.  What the index says that
 * an agent has it has whole, of this tensor and in this life of the agent; no byte is served
 * that nobody wrote; a name that was deleted does not come back; and where all indexes are good
 * and nothing is under way, a tensor of which any agent that lives has a whole copy in the
 * index is not lost.
 *
 * Mutants (-D): EARLY: a replica is entered before its copy is whole.  ANY_TENSOR: it is entered
 * though the tensor was made anew meanwhile.  NO_EPOCH: a replica of an agent's former life
 * becomes the first.  LOST_FIRST: a lapse loses what others have.  ORPHANS: a replica whose first
 * is not there becomes it.
 */
#define N 3
#define FAULTS 2
#define NOBODY 3

mtype = { NONE, COPYING, WHOLE };

/* Redis. */
byte owner = NOBODY, tensor; /* of which making */
bool lost, entered[N], alive[N];
byte of_life[N]; /* the life of the agent in which its replica was entered */
byte of_first;	 /* the same of the first */
bool ticket[N];
byte ticket_of[N];

/* The agents. */
mtype has[N];
byte is[N], life[N], made, faults;
bool deleted;

#define LIVES(a) (alive[a])
#ifdef NO_EPOCH
#define SAME_LIFE(a) true
#else
#define SAME_LIFE(a) (of_life[a] == life[a])
#endif
#define DEAD (owner == NOBODY || lost || !alive[owner] || of_first != life[owner])
#define MAY(a) (entered[a] && LIVES(a) && SAME_LIFE(a))

inline enter_first(a)
{
	owner = a; of_first = life[a]; entered[a] = false; lost = false
}

/* registry_common.lua: promote */
inline promote()
{
	if
	:: MAY(0) -> enter_first(0)
	:: !MAY(0) && MAY(1) -> enter_first(1)
	:: !MAY(0) && !MAY(1) && MAY(2) -> enter_first(2)
	:: else -> lost = true; entered[0] = false; entered[1] = false; entered[2] = false
	fi
}

inline promoted()
{
	if
	:: owner != NOBODY && !lost && DEAD -> promote()
	:: else
	fi
}

inline forget()
{
	owner = NOBODY; lost = false; entered[0] = false; entered[1] = false; entered[2] = false
}

inline create(a)
{
	promoted();
	if
	:: DEAD && made < 2 ->
		forget(); made++; tensor = made; deleted = false;
		has[a] = WHOLE; is[a] = made; enter_first(a)
	:: else
	fi
}

/* registry_ticket.lua, and memory for it */
inline begin(a)
{
	promoted();
	if
	:: !DEAD && owner != a && has[a] == NONE ->
		ticket[a] = true; ticket_of[a] = tensor; has[a] = COPYING; is[a] = tensor;
#ifdef EARLY
		entered[a] = true; of_life[a] = life[a]
#endif
	:: else
	fi
}

/* registry_redeem.lua: the first sends what the ticket is for */
inline copy(a)
{
	if
	:: ticket[a] && !DEAD && owner != a && tensor == ticket_of[a] && has[owner] == WHOLE ->
		has[a] = WHOLE; ticket[a] = false
	:: else -> has[a] = NONE; ticket[a] = false
	fi
}

/* registry_replica.lua, or a filling's registry_put.lua */
inline enter(a)
{
	promoted();
	if
#ifdef ANY_TENSOR
	:: !DEAD && owner != a ->
#else
	:: !DEAD && owner != a && tensor == is[a] ->
#endif
		entered[a] = true; of_life[a] = life[a]
#ifdef ORPHANS
	:: owner == NOBODY -> enter_first(a); tensor = is[a]
	:: else -> if :: owner == a :: else -> has[a] = NONE fi
#else
	:: !DEAD && owner == a
	:: else -> has[a] = NONE
#endif
	fi
}

proctype agent(byte a)
{
end:
	do
	:: atomic { alive[a] && has[a] == NONE && !entered[a] && owner != a -> create(a) }
	:: atomic { alive[a] && has[a] == NONE && owner != a -> begin(a) }
	:: atomic { alive[a] && has[a] == COPYING -> copy(a) }
	:: atomic { alive[a] && has[a] == WHOLE && owner != a && !entered[a] -> enter(a) }
	/* Deleted by who is the first. */
	:: atomic { alive[a] && owner == a && !DEAD -> forget(); has[a] = NONE; deleted = true }
	/* A card falls, or memory is short: registry_yield.lua */
	:: atomic { faults < FAULTS && alive[a] && has[a] == WHOLE -> faults++; has[a] = NONE;
			if
			:: owner == a && !lost -> promote()
			:: else -> entered[a] = false
			fi }
	/* It dies, and is back with nothing before its key lapses, or after. */
	:: atomic { faults < FAULTS && has[a] != NONE -> faults++; has[a] = NONE; life[a]++; ticket[a] = false }
	/* It is back with what it has: it fills. */
	:: atomic { !alive[a] -> alive[a] = true;
			if
			:: owner == a && !lost && of_first == life[a] && has[a] != WHOLE -> forget()
			:: owner == a && lost && has[a] == WHOLE && tensor == is[a] && !deleted ->
				enter_first(a)
			:: else
			fi }
	od
}

proctype world()
{
	byte a;
	bool could;
end:
	do
	/* A key lapses, and any other agent marks it. */
	:: atomic { faults < FAULTS -> faults++;
			if :: a = 0 :: a = 1 :: a = 2 fi;
			alive[a] = false; entered[a] = false;
			could = MAY(0) || MAY(1) || MAY(2);
			if
			:: owner == a && !lost ->
#ifdef LOST_FIRST
				lost = true; entered[0] = false; entered[1] = false; entered[2] = false
#else
				promote()
#endif
				;
				assert(!lost || !could)
			:: else
			fi }
	od
}

/* At any time, once: what the index says is so. */
proctype observer()
{
	atomic {
		assert(!(entered[0] && LIVES(0) && of_life[0] == life[0]) ||
			(has[0] == WHOLE && is[0] == tensor));
		assert(!(entered[1] && LIVES(1) && of_life[1] == life[1]) ||
			(has[1] == WHOLE && is[1] == tensor));
		assert(!(entered[2] && LIVES(2) && of_life[2] == life[2]) ||
			(has[2] == WHOLE && is[2] == tensor));
		assert(DEAD || (has[owner] == WHOLE && is[owner] == tensor));
		assert(!deleted || owner == NOBODY)
	}
}

init
{
	atomic { alive[0] = true; alive[1] = true; alive[2] = true;
		has[0] = NONE; has[1] = NONE; has[2] = NONE;
		run agent(0); run agent(1); run agent(2); run world(); run observer() }
}
