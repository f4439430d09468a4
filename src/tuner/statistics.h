// Few numbers about many times.
#ifndef TILEJIT_TUNER_STATISTICS_H_
#define TILEJIT_TUNER_STATISTICS_H_

#include <vector>

namespace tl {

// Of at least one value; of an even number the upper one of the two in the middle.
double Median(std::vector<double> values);

// Whether `challenger` is faster than `incumbent` beyond doubt. The two were timed in turn: element
// i of each belongs to round i. It takes a median at least `margin` below (0.02: 2 %) and the
// better time in three of four rounds; anything less is a tie.
bool Beats(const std::vector<double>& challenger, const std::vector<double>& incumbent,
           double margin);

}  // namespace tl

#endif  // TILEJIT_TUNER_STATISTICS_H_
