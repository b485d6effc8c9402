/* SPDX-License-Identifier: Apache-2.0
 *
 * What a worker asks of the agent's front, and fronts that die at any moment
 * (gpu-agent/front/adopt.c, lease.c, journal.c; gpu-agent/worker/worker_control.c: say_again).  The
 * supervisor keeps both queues; a front knows what the journal says, and nothing else.  Each wish
 * is answered, by an answer that is its own, and the journal never says less than the worker has.
 *
 * Mutants (-D): NEVER_AGAIN: a wish that a dead front read is answered by nobody.  HEARS_AT_ONCE,
 * AGAIN_WITHOUT_NUMBER: an answer is taken for another wish's.  GRANT_BEFORE_JOURNAL: a session
 * has more than the ledger knows of.
 */
#define WISHES 3
#define DEATHS 3

mtype = { LEASE, AGAIN, GRANT, ADOPTED };

chan to_front = [6] of { mtype, byte, byte }; /* what, wish or number, bytes: the wish's identity */
chan to_worker = [6] of { mtype, byte, byte };

byte journal; /* bytes of device memory that the session has, as the next front will believe */
byte lease;   /* as the worker knows */
byte deaths;
bool done;

/* Each wish is for one unit; its number is the model's, to see whose an answer is. */
proctype worker()
{
	byte wish, answered, number, what;

	do
	:: wish == WISHES -> break
	:: else ->
		wish++;
		to_front!LEASE(wish, 0);
		do
		:: to_worker?GRANT(answered, what) ->
			assert(answered == wish);
			lease = what;
			assert(lease <= journal);
			break
		:: to_worker?ADOPTED(number, what) ->
			to_front!AGAIN(number, 0);
#ifndef NEVER_AGAIN
			to_front!LEASE(wish, 0)
#endif
		od;
		/* Between two wishes it hears of new fronts too. */
		do
		:: to_worker?[ADOPTED(_, _)] -> to_worker?ADOPTED(number, what); to_front!AGAIN(number, 0)
		:: break
		od
	od;
	done = true;
end:
	do
	:: to_worker?ADOPTED(number, what) -> to_front!AGAIN(number, 0)
	:: to_worker?GRANT(answered, what) -> assert(false)
	od
}

/* One front after the other: `deaths` is its number. */
proctype fronts()
{
	byte wish, number, what, had;
	bool deaf;

begin:
	had = journal;
	deaf = false;
	if
	:: deaths > 0 ->
		to_worker!ADOPTED(deaths, 0);
#ifndef HEARS_AT_ONCE
		deaf = true
#endif
	:: else
	fi;
end:
	do
	:: deaths < DEATHS && !done -> deaths++; goto begin
	:: to_front?AGAIN(number, what) ->
#ifdef AGAIN_WITHOUT_NUMBER
		deaf = false
#else
		if
		:: number == deaths -> deaf = false
		:: else
		fi
#endif
	:: to_front?LEASE(wish, what) ->
		if
		:: deaths < DEATHS -> deaths++; goto begin /* it read it, and died */
		:: deaf -> skip
		:: else ->
			had++;
#ifdef GRANT_BEFORE_JOURNAL
			to_worker!GRANT(wish, had);
			if
			:: deaths < DEATHS -> deaths++; goto begin
			:: skip
			fi;
			journal = had
#else
			journal = had;
			if
			:: deaths < DEATHS -> deaths++; goto begin
			:: skip
			fi;
			to_worker!GRANT(wish, had)
#endif
		fi
	od
}

init
{
	atomic { run worker(); run fronts() }
}
