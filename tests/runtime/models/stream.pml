/* The queue of runtime/cpu/cpu_stream.h: one issuer launches cheap and long work and waits for an
 * event that another thread completes; two workers drain; the issuer destroys the stream as soon
 * as it sees it idle.
 *
 * Held: one drainer at a time; every item runs once and in order; work that runs on the issuer's
 * thread overtakes nothing; nothing touches the stream once it is destroyed; no interleaving
 * stops before all is done (an invalid end state).
 *
 * A broken queue is chosen by -D...; each must be found.
 */
#define ITEMS 4
#define RUNS 3 /* items that are work */
#define LONG 0
#define WAIT 1
#define CHEAP 2

byte queue[ITEMS]; /* kinds, in the order of pushing */
byte order[ITEMS]; /* which work it is */
byte head = 0, tail = 0;
byte pending = 0;
bool is_locked = false; /* the stream's mutex */
bool is_dead = false;   /* destroyed */

byte tokens = 0; /* drains that the pool has been asked for */
bool is_draining = false;
byte ran = 0;

bool is_complete = false; /* the event, under its own mutex: atomic steps */
bool is_listening = false;

inline lock() { atomic { !is_locked -> is_locked = true; assert(!is_dead) } }
inline unlock() { atomic { assert(!is_dead); is_locked = false } }

inline execute(command) {
  assert(command == ran); /* in order, none twice */
  ran++
}

inline push(kind, command) {
#ifdef LOOKS_IDLE_BEFORE_PUSHING
  was_idle = (pending == 0);
#endif
  lock();
  queue[tail] = kind;
  order[tail] = command;
  tail++;
#ifndef LOOKS_IDLE_BEFORE_PUSHING
  atomic { was_idle = (pending == 0); pending++ };
#else
  pending++;
#endif
  unlock();
#ifdef SCHEDULES_ALWAYS
  tokens++
#else
  if
  :: was_idle -> tokens++
  :: else
  fi
#endif
}

inline launch(kind, command) {
  if
  :: kind == CHEAP && pending == 0 -> execute(command)
  :: else -> push(kind, command)
  fi
}

proctype issuer() {
  bool was_idle;
  launch(LONG, 0);
  if
  :: is_complete /* a wait for a complete event is none */
  :: else -> push(WAIT, 0)
  fi;
  launch(CHEAP, 1);
  launch(LONG, 2);
  pending == 0;
#ifndef DESTROYS_WITHOUT_LOCK
  !is_locked; /* the destructor takes the mutex */
#endif
  is_dead = true;
  assert(ran == RUNS)
}

proctype recorder() {
  bool wakes;
  atomic {
    is_complete = true;
    wakes = is_listening;
    is_listening = false
  };
  if
  :: wakes -> tokens++
  :: else
  fi
}

proctype worker() {
  byte kind, command;
  bool is_last, is_parked;
end:
  do
  :: atomic { tokens > 0 -> tokens-- };
     assert(!is_draining);
     is_draining = true;
     is_parked = false;
     do
     :: lock();
        assert(head < tail);
        kind = queue[head];
        command = order[head];
        unlock();
        if
        :: kind == WAIT ->
#ifdef LOOKS_THEN_LISTENS
           if
           :: is_complete
           :: else -> is_draining = false; is_listening = true; is_parked = true
           fi
#else
           atomic {
             if
             :: is_complete
             :: else -> is_draining = false; is_listening = true; is_parked = true
             fi
           }
#endif
        :: else
        fi;
        if
        :: is_parked -> break
        :: else
        fi;
#ifdef POPS_BEFORE_RUNNING
        lock();
        head++;
        atomic { pending--; is_last = (pending == 0); if :: is_last -> is_draining = false :: else fi };
        unlock();
        if
        :: kind != WAIT -> execute(command)
        :: else
        fi;
#else
        if
        :: kind != WAIT -> execute(command)
        :: else
        fi;
        lock();
        head++;
#ifdef LOOKS_EMPTY_BEFORE_POPPING
        is_last = (pending == 1);
        unlock();
        if :: is_last -> is_draining = false :: else fi;
        atomic { pending-- };
#else
        atomic { pending--; is_last = (pending == 0); if :: is_last -> is_draining = false :: else fi };
        unlock();
#endif
#endif
        if
        :: is_last -> break
        :: else
        fi
     od
  od
}

init {
  atomic {
    run issuer();
    run recorder();
    run worker();
    run worker()
  }
}
