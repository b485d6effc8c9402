#include <stdio.h>
#include <time.h>
int cudaFree(void *);
static double us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}
int main()
{
	double a = us();
	int r = cudaFree(0);
	double b = us();
	printf("%d %.1f\n", r, b - a);
	return 0;
}
