/* The end of a run, runtime/api/end_signal.h: wait() sleeps on one word until set() says that the
 * run has ended. The waiter launches the run again, or frees it, as soon as it has seen that; set()
 * names the word once more then, to wake by its address.
 *
 * Held: the waiter goes on each time, and only when the run is done (no interleaving leaves it
 * asleep: an invalid end state); nobody looks at the word after it is gone.
 *
 * A broken end is chosen by -D...; each must be found.
 */
#define RUNNING 0
#define AWAITED 1
#define DONE 2
#define LAUNCHES 2

#ifdef SLEEPS_WITHOUT_SAYING_SO
#define EXPECTED RUNNING
#else
#define EXPECTED AWAITED
#endif

byte word = DONE;
bool is_asleep = false;
bool is_made = false; /* what the run makes */
bool is_gone = false;

inline touch() {
  assert(!is_gone)
}

proctype ending() {
  byte old;
  is_made = true;
#ifdef ENDS_IN_TWO_STEPS
  touch();
  old = word;
  touch();
  word = DONE;
#else
  atomic { touch(); old = word; word = DONE };
#endif
  if
#ifdef WAKES_NOBODY
  :: false -> is_asleep = false
#else
  :: old == AWAITED -> is_asleep = false /* by the address */
#endif
  :: else
  fi;
#ifdef READS_AFTER_WAKING
  touch()
#endif
}

proctype waiter() {
  byte launches = 0;
  bool is_done;
  do
  :: launches < LAUNCHES ->
     launches++;
     is_made = false;
     word = RUNNING;
     run ending();
#ifndef SLEEPS_WITHOUT_SAYING_SO
     atomic {
       if
       :: word == RUNNING -> word = AWAITED
       :: else
       fi
     };
#endif
     do
     :: word == DONE -> break
     :: else ->
#ifdef SLEEPS_WITHOUT_COMPARING
        is_asleep = true;
#else
        atomic { /* the kernel's */
          if
          :: word == EXPECTED -> is_asleep = true
          :: else
          fi
        };
#endif
        !is_asleep
     od;
     assert(is_made)
  :: else -> break
  od;
  is_gone = true
}

init {
  run waiter()
}
