/* A wall clock that is SHIFT seconds ahead, to be preloaded. What waits does so by the
   monotonic clock, which stays right. Uses no header, as a machine may have none. */

enum { REALTIME = 0, REALTIME_COARSE = 5 };
struct timespec { long seconds, nanoseconds; };
struct timeval { long seconds, microseconds; };

void *dlsym(void *library, const char *name);
#define NEXT_LIBRARY ((void *)-1)

int clock_gettime(int clock, struct timespec *now)
{
    static int (*right)(int, struct timespec *);
    if (!right)
        right = dlsym(NEXT_LIBRARY, "clock_gettime");
    int result = right(clock, now);
    if (!result && (clock == REALTIME || clock == REALTIME_COARSE))
        now->seconds += SHIFT;
    return result;
}

int gettimeofday(struct timeval *now, void *zone)
{
    struct timespec precise;
    clock_gettime(REALTIME, &precise);
    now->seconds = precise.seconds;
    now->microseconds = precise.nanoseconds / 1000;
    return 0;
}

long time(long *now)
{
    struct timespec precise;
    clock_gettime(REALTIME, &precise);
    return now ? *now = precise.seconds : precise.seconds;
}
