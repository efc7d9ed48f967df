/* How a scheduler that polls a GPU falls asleep and is woken: WorkWatch (runtime/cuda/work_watch.h)
 * between two threads that issue work and two schedulers that poll the same device. The device ends
 * what was issued at any time; only a poll hears of it.
 *
 *   issuer     counts its work; tell(): where somebody watches, nobody does any more, and all are
 *              poked
 *   scheduler  drains, polls; watch(); work that was not heard to end? naps, else sleeps until poked
 *
 * Held: no interleaving leaves all schedulers asleep while there is work whose end nobody has heard
 * (an invalid end state). A poke is the inbox's, which inbox.pml is about: whoever was poked since
 * it last drained does not fall asleep.
 *
 * A broken protocol is chosen by -D...; each must be found. Steps are sequentially consistent, as
 * watch(), tell() and the count are in the code.
 */
#define ISSUERS 2
#define SCHEDULERS 2

byte requested = 0;
byte ended = 0; /* by the device */
byte heard = 0;
bool is_watched = false;
bool is_poked[SCHEDULERS];

inline poke_all() {
  for (i : 0 .. SCHEDULERS - 1) { is_poked[i] = true }
}

inline tell() {
  if
  :: is_watched ->
     atomic { was_watched = is_watched; is_watched = false }
     if
     :: was_watched -> poke_all()
     :: else
     fi
  :: else
  fi
}

active [ISSUERS] proctype issuer() {
  byte i;
  bool was_watched;
#ifdef TELL_COMES_FIRST
  tell();
  requested++
#else
  requested++;
  tell()
#endif
}

active proctype device() {
  do
  :: atomic { ended < requested -> ended++ }
  :: ended == ISSUERS -> break
  od
}

active [SCHEDULERS] proctype scheduler() {
  byte me = _pid - ISSUERS - 1;
  bool is_wanted;
drained:
  is_poked[me] = false;
again:
  heard = ended;
#ifdef WATCH_COMES_LAST
  is_wanted = (heard != requested);
  is_watched = true;
#else
#ifndef NOBODY_WATCHES
  is_watched = true;
#endif
  is_wanted = (heard != requested);
#endif
  if
  :: is_wanted -> goto again
  :: else
  fi;
end_asleep:
  /* Asleep for good is fine only once everything has been heard of. */
  is_poked[me] -> goto drained
}

/* Ends when all has been heard; stuck before that: an invalid end state. */
active proctype waiter() {
  heard == ISSUERS
}
