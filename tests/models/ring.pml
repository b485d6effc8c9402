/* SPDX-License-Identifier: Apache-2.0
 *
 * The command ring and its two wake-ups (shim/engine/ring.c, shim/engine/engine.c; transport/ring.c,
 * sidecar/channel/channel.c) on x86's memory: what a thread stores waits in a buffer of its own, in order,
 * and reaches memory whenever it likes; the thread itself sees it at once.  Every frame arrives
 * once and in order, with its bytes, and nobody sleeps for ever.
 *
 * Mutants (-D): NO_PRODUCER_FENCE, NO_CONSUMER_FENCE, NO_LAST_LOOK: the doorbell is missed.
 * NO_ROOM_FENCE: the producer sleeps for ever.  BYTES_LATE, EARLY_HEAD: a frame's bytes are wrong.
 */
#define ROOM 2	 /* entries in the ring */
#define FRAMES 6 /* that are sent */
#define STORES 3 /* that a buffer holds */

#define PRODUCER 0
#define CONSUMER 1

/* Memory: places. */
#define TAIL 0
#define HEAD 1
#define IDLE 2
#define BYTES 3 /* … BYTES + ROOM - 1 */

byte memory[BYTES + ROOM];
byte place[2 * STORES];
byte value[2 * STORES];
byte held[2];	    /* stores in each buffer */
byte want_progress; /* by locked instructions only, which wait for the buffer */
byte progress;
bit doorbell;

inline store(thread, where, what)
{
	atomic {
		held[thread] < STORES;
		place[thread * STORES + held[thread]] = where;
		value[thread * STORES + held[thread]] = what;
		held[thread]++;
	}
}

inline load(thread, where, into)
{
	d_step {
		into = memory[where];
		if
		:: held[thread] > 0 && place[thread * STORES] == where -> into = value[thread * STORES]
		:: else
		fi;
		if
		:: held[thread] > 1 && place[thread * STORES + 1] == where ->
			into = value[thread * STORES + 1]
		:: else
		fi;
		if
		:: held[thread] > 2 && place[thread * STORES + 2] == where ->
			into = value[thread * STORES + 2]
		:: else
		fi
	}
}

inline fence(thread) { held[thread] == 0 }

proctype drain(byte thread)
{
end:
	do
	:: atomic {
		held[thread] > 0;
		memory[place[thread * STORES]] = value[thread * STORES];
		place[thread * STORES] = place[thread * STORES + 1];
		value[thread * STORES] = value[thread * STORES + 1];
		place[thread * STORES + 1] = place[thread * STORES + 2];
		value[thread * STORES + 1] = value[thread * STORES + 2];
		held[thread]--;
		place[thread * STORES + held[thread]] = 0;
		value[thread * STORES + held[thread]] = 0
	   }
	od
}

proctype producer()
{
	byte sent, head, seen, idle;

	do
	:: sent == FRAMES -> break
	:: else ->
		load(PRODUCER, HEAD, head);
		do /* ring_has_room, wait_for_room */
		:: sent - head < ROOM -> break
		:: else ->
			seen = progress;
#ifndef NO_ROOM_FENCE
			fence(PRODUCER);
#endif
			want_progress++;
			load(PRODUCER, HEAD, head);
			if
			:: sent - head < ROOM -> skip
			:: else -> progress != seen /* asleep */
			fi;
			want_progress--;
			load(PRODUCER, HEAD, head)
		od;
#ifdef BYTES_LATE
		store(PRODUCER, TAIL, sent + 1);
		store(PRODUCER, BYTES + sent % ROOM, sent + 1);
#else
		store(PRODUCER, BYTES + sent % ROOM, sent + 1);
		store(PRODUCER, TAIL, sent + 1);
#endif
		sent++;
		/* doorbell() */
#ifndef NO_PRODUCER_FENCE
		fence(PRODUCER);
#endif
		load(PRODUCER, IDLE, idle);
		if
		:: idle -> atomic { /* a locked instruction */
				fence(PRODUCER);
				if
				:: memory[IDLE] -> memory[IDLE] = 0; doorbell = 1
				:: else
				fi
			   }
		:: else
		fi
	od
}

proctype consumer()
{
	byte taken, tail, got;

	do
	:: taken == FRAMES -> break
	:: else ->
		load(CONSUMER, TAIL, tail);
		if
		:: tail != taken ->
			assert(tail > taken && tail - taken <= ROOM);
#ifdef EARLY_HEAD
			store(CONSUMER, HEAD, taken + 1);
#endif
			load(CONSUMER, BYTES + taken % ROOM, got);
			assert(got == taken + 1);
			taken++;
			/* ring_acknowledge */
#ifndef EARLY_HEAD
			store(CONSUMER, HEAD, taken);
#endif
#ifndef NO_ROOM_FENCE
			fence(CONSUMER);
#endif
			if
			:: want_progress > 0 -> fence(CONSUMER); progress++
			:: else
			fi
		:: else -> /* channel_sleep */
			store(CONSUMER, IDLE, 1);
#ifndef NO_CONSUMER_FENCE
			fence(CONSUMER);
#endif
#ifndef NO_LAST_LOOK
			load(CONSUMER, TAIL, tail);
#endif
			if
			:: tail != taken -> skip
			:: else -> doorbell; doorbell = 0
			fi;
			store(CONSUMER, IDLE, 0)
		fi
	od
}

init
{
	atomic {
		run drain(PRODUCER);
		run drain(CONSUMER);
		run producer();
		run consumer()
	}
}
