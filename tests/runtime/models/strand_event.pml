/* CpuEvent of runtime/cpu/strand.h: two strands wait for one event while a third records it.
 *
 * Held: each strand goes on exactly once, and only after the record; no interleaving leaves one
 * waiting (an invalid end state).
 *
 * A broken event is chosen by -D...; each must be found.
 */
#define PENDING 0
#define DONE 1
#define FIRST 2 /* strand s on the list is FIRST + s */

byte state = PENDING;
byte next[FIRST + 2];
bool is_recorded = false;
byte times[2]; /* that the strand went on */

inline go_on(s) {
  assert(is_recorded);
  times[s]++;
  assert(times[s] == 1)
}

proctype strand(byte s) {
  byte seen, is_parked = 0;
  seen = state;
  do
  :: seen == DONE -> break
  :: else ->
#ifdef LINKS_AFTER_EXCHANGE
     atomic {
       if
       :: state == seen -> state = FIRST + s; is_parked = 1
       :: else -> seen = state
       fi
     }
     if
     :: is_parked -> next[FIRST + s] = seen; break
     :: else
     fi
#else
     next[FIRST + s] = seen;
#ifdef WAIT_STORES
     state = FIRST + s;
     is_parked = 1;
     break
#else
     atomic {
       if
       :: state == seen -> state = FIRST + s; is_parked = 1
       :: else -> seen = state
       fi
     }
     if
     :: is_parked -> break
     :: else
     fi
#endif
#endif
  od;
#ifdef TOUCHES_AFTER_PARKING
  if
  :: is_parked -> next[FIRST + s] = PENDING
  :: else -> go_on(s)
  fi;
#else
  if
  :: !is_parked -> go_on(s)
  :: else
  fi;
#endif
  times[s] == 1 /* the strand that parked goes on by the recorder */
}

proctype recorder() {
  byte list, following;
  is_recorded = true;
#ifdef RECORD_LOADS_THEN_STORES
  list = state;
  state = DONE;
#else
#ifdef RECORD_TAKES_NONE
  list = PENDING;
  state = DONE;
#else
  atomic { list = state; state = DONE };
#endif
#endif
  do
  :: list >= FIRST ->
     following = next[list];
     go_on(list - FIRST);
     list = following
  :: else -> break
  od
}

init {
  atomic {
    run strand(0);
    run strand(1);
    run recorder()
  }
}
