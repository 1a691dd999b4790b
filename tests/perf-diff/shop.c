/* A shop that serves baskets beside a helper that tidies up: two processes whose functions take time in known proportions.
 * ROUNDS is what differs between base and head: how long `hash` takes. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef ROUNDS
#define ROUNDS 300
#endif

static volatile unsigned long sink;

static unsigned long hash(unsigned long x)
{
    for (int i = 0; i < ROUNDS; i++)
        x = x * 6364136223846793005UL + 1442695040888963407UL;
    return x;
}

static unsigned long parse(unsigned long x)
{
    for (int i = 0; i < 300; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

static unsigned long lookup(unsigned long x)
{
    return hash(x) + 1;
}

static void serve(unsigned long x)
{
    sink += parse(x);
    sink += lookup(x);
}

static void tidy(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        sink += i * i;
}

/* Stays on a processor, where there is one of that number. */
static void stay_on(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

int main(int argc, char **argv)
{
    unsigned long baskets = argc > 1 ? strtoul(argv[1], 0, 10) : 200000;
    pid_t helper = fork();
    if (helper == 0) {
        stay_on(1);
        prctl(PR_SET_NAME, "helper", 0, 0, 0);
        tidy(200 * baskets);
        _exit(0);
    }
    stay_on(0);
    for (unsigned long i = 0; i < baskets; i++)
        serve(i);
    waitpid(helper, 0, 0);
    return 0;
}
