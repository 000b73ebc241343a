# Compares pairs: reads lines of two positive numbers, prints the median of the pairs' ratios
# (second : first), or of their differences (second - first) with -v difference=1, and the ends of
# its 95 % confidence interval.
#
# The interval needs no distribution: it reaches from the k-th smallest to the k-th largest value,
# with the largest k for which fewer than k of n tosses of a coin are heads in at most 2.5 % of all
# cases (Conover, Practical Nonparametric Statistics, section 3.2). Below 6 pairs it cannot be had,
# and smallest and largest are printed.
{ value[NR] = difference ? $2 - $1 : $2 / $1 }

END {
    for (i = 2; i <= NR; i++)
        for (j = i; j > 1 && value[j] < value[j - 1]; j--) {
            swap = value[j]; value[j] = value[j - 1]; value[j - 1] = swap
        }
    probability = 0.5 ^ NR
    below = probability
    for (k = 1; k < NR / 2; k++) {
        probability *= (NR - k + 1) / k
        if (below + probability > 0.025)
            break
        below += probability
    }
    middle = NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2
    print middle, value[k], value[NR + 1 - k]
}
