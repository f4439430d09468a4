// The activations of the families, in double.
#ifndef TILEJIT_TESTS_ORACLE_ACTIVATION_H_
#define TILEJIT_TESTS_ORACLE_ACTIVATION_H_

namespace oracle {

enum class Activation { kNone, kRelu, kGelu, kGeluTanh, kSilu, kSigmoid };

double Activate(Activation act, double x);

// How far act(x) may be off when x is by `error` and the arithmetic has `eps`.
double ActivationBound(Activation act, double x, double error, double eps);

}  // namespace oracle

#endif  // TILEJIT_TESTS_ORACLE_ACTIVATION_H_
