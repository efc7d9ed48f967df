/* The wake-up protocol of runtime/coroutine/inbox.h: two producers push two nodes each, a third
 * thread publishes something and pokes, one consumer drains and sleeps. Every interleaving of
 * steps on the one word.
 *
 * Held: no interleaving leaves the consumer asleep with something to do (an invalid end state);
 * every node is received once, and those of one producer in order.
 *
 * A broken protocol is chosen by -D...; each must be found. Memory order is not modelled: the
 * argument in inbox.h needs one word only.
 */
#define EMPTY 0
#define SLEEPING 1
#define POKED 2
#define FIRST 3 /* node k of producer p is FIRST + 2 p + k */
#define NODES 4

byte word = EMPTY;
byte next[FIRST + NODES];
bool is_blocked = false; /* in futex_wait */
bool published = false;
byte received = 0;
byte received_of[2];

inline futex_wake() { is_blocked = false }

inline push(node) {
  head = word;
  do
  :: if
     :: head > POKED -> next[node] = head
     :: else -> next[node] = 0
     fi;
     atomic {
       if
       :: word == head -> word = node; is_done = true
       :: else -> head = word; is_done = false
       fi
     }
     if
     :: is_done -> break
     :: else
     fi
  od;
#ifndef PUSH_NEVER_WAKES
  if
  :: head == SLEEPING -> futex_wake()
  :: else
  fi
#endif
}

inline poke() {
#ifdef POKE_STORES
  head = word;
  word = POKED;
#else
  head = word;
  do
  :: atomic {
       if
       :: word == head ->
          if
          :: head <= POKED -> word = POKED
          :: else
          fi;
          is_done = true
       :: else -> head = word; is_done = false
       fi
     }
     if
     :: is_done -> break
     :: else
     fi
  od;
#endif
  if
  :: head == SLEEPING -> futex_wake()
  :: else
  fi
}

proctype producer(byte p) {
  byte head;
  bool is_done;
  push(FIRST + 2 * p);
  push(FIRST + 2 * p + 1)
}

proctype publisher() {
  byte head;
  bool is_done;
#ifdef POKE_BEFORE_PUBLISHING
  poke();
  published = true
#else
  published = true;
  poke()
#endif
}

/* Takes the list, youngest first, and turns it round, as drain() does. */
inline drain() {
#ifdef DRAIN_LOADS_THEN_STORES
  head = word;
  word = EMPTY;
#else
  atomic { head = word; word = EMPTY };
#endif
  if
  :: head > POKED ->
     oldest = 0;
     do
     :: head != 0 -> older = next[head]; next[head] = oldest; oldest = head; head = older
     :: else -> break
     od;
     do
     :: oldest != 0 ->
        assert(received_of[(oldest - FIRST) / 2] == (oldest - FIRST) % 2);
        received_of[(oldest - FIRST) / 2]++;
        received++;
        oldest = next[oldest]
     :: else -> break
     od
  :: else
  fi
}

inline sleep() {
#ifdef SLEEP_STORES
  head = word;
  if
  :: head == EMPTY -> word = SLEEPING; is_done = true
  :: else -> is_done = false
  fi;
#else
  atomic {
    if
    :: word == EMPTY -> word = SLEEPING; is_done = true
    :: else -> is_done = false
    fi
  }
#endif
  if
  :: is_done ->
     atomic { /* futex_wait looks at the word and blocks in one step */
#ifdef FUTEX_DOES_NOT_LOOK
       is_blocked = true
#else
       if
       :: word == SLEEPING -> is_blocked = true
       :: else
       fi
#endif
     };
     !is_blocked;
#ifdef WAKES_AND_CLEARS
     word = EMPTY
#else
     atomic {
       if
       :: word == SLEEPING -> word = EMPTY
       :: else
       fi
     }
#endif
  :: else
  fi
}

proctype consumer() {
  byte head, older, oldest;
  bool is_done, is_new, has_seen = false;
  do
#ifdef LOOKS_BEFORE_DRAINING
  :: is_new = published && !has_seen;
     drain();
#else
  :: drain();
     is_new = published && !has_seen;
#endif
     has_seen = has_seen || is_new;
     if
     :: received == NODES && has_seen -> break
     :: is_new -> skip
     :: else -> sleep()
     fi
  od
}

init {
  atomic {
    run producer(0);
    run producer(1);
    run publisher();
    run consumer()
  }
}
