#pragma once
// Ctrl-C and SIGTERM as a question that a long run asks between its steps.

namespace clebsch::tool {

/// While it lives, the first SIGINT or SIGTERM only makes stopped() true; a second one ends the program as usual. One at a time.
class Interrupt {
 public:
    Interrupt();
    ~Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

    static bool stopped();
};

}  // namespace clebsch::tool
