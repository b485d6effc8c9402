/* SPDX-License-Identifier: Apache-2.0
 *
 * The consumer of the command ring (transport/ring.c: ring_next, ring_pop) against a program that
 * changes everything in the shared memory at any time.  What the consumer copies lies inside the
 * ring and inside of what was published, and what it checked is what it uses.
 *
 * Mutants (-D): NO_TAIL_CHECK, NO_LENGTH_CHECK, SECOND_FETCH.
 */
#define SIZE 4	  /* of the ring, in units of an entry's header */
#define LARGEST 7 /* number that a hostile program writes */
#define TURNS 4

byte tail, length; /* shared */
byte taken, released; /* the consumer's own, modulo nothing: TURNS is small */
bool poisoned;

active proctype program()
{
end:
	do
	:: select(tail : 0 .. LARGEST)
	:: select(length : 0 .. LARGEST)
	od
}

active proctype consumer()
{
	byte seen, need, position, turn;
	short published;

	do
	:: turn == TURNS || poisoned -> break
	:: else ->
		turn++;
		seen = tail;
		published = seen - taken;
		if
		:: published == 0 -> skip
#ifndef NO_TAIL_CHECK
		:: published < 0 || published > SIZE - (taken - released) -> poisoned = true
		:: else ->
#else
		:: published != 0 ->
#endif
			position = taken % SIZE;
			need = length; /* the one look */
#ifndef NO_LENGTH_CHECK
			if
			:: need == 0 || need > published || need > SIZE - position -> poisoned = true
			:: else ->
#else
			if
			:: true ->
#endif
#ifdef SECOND_FETCH
				need = length;
#endif
				assert(need > 0);
				assert(position + need <= SIZE);
				assert(need <= published && published <= SIZE);
				taken = taken + need;
				if
				:: released = taken /* acknowledged */
				:: skip
				fi
			fi
		fi
	od
}
