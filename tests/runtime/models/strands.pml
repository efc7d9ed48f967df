/* StrandEvent and RunningStrands of runtime/device: a main strand and another one, which rests
 * between the rounds of a block, meet at two events, in two rounds; the run may be stopped at any
 * moment.
 *
 *   main      record ENTRY . wait END       other   [rests at] wait ENTRY . record END
 *
 * Held: nothing is touched once the run is complete, it is complete once, a strand is executed by
 * one worker at a time, works in each round only behind the main strand's record, and no
 * interleaving leaves anything waiting (an invalid end state).
 *
 * A broken protocol is chosen by -D...; each must be found.
 */
#define ROUNDS 2
#define NOBODY 0
#define MAIN 1
#define OTHER 2
#define RELEASED 3
#define ENTRY 0
#define END 1

byte count[2];
byte list[2];     /* NOBODY, the one strand that waits, or RELEASED */
bool rests[3];    /* by strand */
byte round = 1;   /* of the other strand */
byte main_round = 0;
byte live = 1;
byte ready[3];    /* strands that a worker may take */
byte owned[3];    /* by so many workers */
bool is_stopped = false;
byte completed = 0;
byte worked = 0;  /* rounds */

#define TOUCH assert(completed == 0)

inline leave() {
  atomic {
    live--;
    if
    :: live == 0 -> completed++; assert(completed == 1)
    :: else
    fi
  }
}

inline wake(who) {
  if
  :: who == MAIN || who == OTHER ->
     if
     :: rests[who] ->
        rests[who] = false;
#ifndef WAKE_COUNTS_NOBODY
        live++;
#endif
        skip
     :: else
     fi;
     ready[who]++
  :: else
  fi
}

/* The strands that waited, or RELEASED: nobody. */
inline record(event, taken) {
#ifdef RECORD_IN_TWO_STEPS
  TOUCH; taken = list[event];
  atomic {
    count[event]++;
    if
    :: list[event] != RELEASED -> list[event] = NOBODY
    :: else
    fi
  }
#else
  atomic {
    TOUCH;
    taken = list[event];
    count[event]++;
    if
    :: taken != RELEASED -> list[event] = NOBODY
    :: else
    fi
  }
#endif
  wake(taken)
}

/* goes_on: the count is there, or all are released; else the strand is on the list. */
inline wait_or_park(event, wanted, who, goes_on) {
#ifdef PARKS_WITHOUT_LOOKING_AGAIN
  TOUCH; goes_on = (count[event] >= wanted || list[event] == RELEASED);
  if
  :: !goes_on -> atomic { owned[who]--; list[event] = who }
  :: else
  fi
#else
  atomic {
    TOUCH;
    goes_on = (count[event] >= wanted || list[event] == RELEASED);
    if
    :: !goes_on -> assert(list[event] == NOBODY); list[event] = who; owned[who]--
    :: else
    fi
  }
#endif
}

inline release(event, taken) {
  atomic { TOUCH; taken = list[event]; list[event] = RELEASED };
  if
#ifdef RELEASE_WAKES_WHO_RESTS
  :: taken == MAIN || taken == OTHER -> ready[taken]++
#else
  :: (taken == MAIN || taken == OTHER) && !rests[taken] -> ready[taken]++
#endif
  :: else
  fi
}

inline end_strand(who, taken) {
  if
  :: is_stopped ->
     release(ENTRY, taken);
     release(END, taken)
  :: else
  fi;
  owned[who]--;
  leave()
}

proctype main_worker() {
  byte taken;
  bool goes_on;
  bool is_waiting = false;
end_idle:
  do
  :: atomic { ready[MAIN] > 0 -> ready[MAIN]--; owned[MAIN]++; assert(owned[MAIN] == 1) };
next_command:
     if
     :: is_stopped -> end_strand(MAIN, taken); break
     :: !is_waiting && main_round == ROUNDS -> end_strand(MAIN, taken); break
     :: !is_waiting && main_round < ROUNDS ->
        main_round++;
        record(ENTRY, taken);
        is_waiting = true;
        goto next_command
     :: is_waiting && !is_stopped ->
        wait_or_park(END, main_round, MAIN, goes_on);
        if
        :: goes_on -> is_waiting = false; goto next_command
        :: else
        fi
     fi
  od
}

/* Two of them: one may still be on its way out of a round when the next one begins. */
proctype other_worker() {
  byte taken;
  bool goes_on;
end_idle:
  do
  :: atomic { ready[OTHER] > 0 -> ready[OTHER]--; owned[OTHER]++; assert(owned[OTHER] == 1) };
next_round:
     if
     :: is_stopped -> end_strand(OTHER, taken)
     :: else ->
        wait_or_park(ENTRY, round, OTHER, goes_on);
        if
        :: goes_on && !is_stopped ->
           assert(main_round >= round);
           worked++;
           round++;
#ifdef LEAVES_BEFORE_IT_RESTS
           record(END, taken);
           leave();
           rests[OTHER] = true;
           wait_or_park(ENTRY, round, OTHER, goes_on);
           if
           :: goes_on -> rests[OTHER] = false; live++; goto next_round
           :: else
           fi
#else
           record(END, taken);
           rests[OTHER] = true;
           wait_or_park(ENTRY, round, OTHER, goes_on);
           if
           :: goes_on -> rests[OTHER] = false; goto next_round
           :: else -> leave()
           fi
#endif
        :: goes_on && is_stopped -> goto next_round
        :: else
        fi
     fi
  od
}

proctype stopper() {
  if
  :: is_stopped = true
  :: skip
  fi
}

init {
  atomic {
    list[ENTRY] = OTHER;
    rests[OTHER] = true;
    ready[MAIN] = 1;
    run main_worker();
    run other_worker();
    run other_worker();
    run stopper()
  };
  completed == 1;
  assert(is_stopped || worked == ROUNDS)
}
