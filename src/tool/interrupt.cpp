#include "tool/interrupt.hpp"

#include <signal.h>

#include <initializer_list>

namespace clebsch::tool {
namespace {

volatile sig_atomic_t arrived = 0;  // all that a signal handler may touch

extern "C" void note_signal(int) { arrived = 1; }

void install(void (*handler)(int)) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
    arrived = 0;
    install(note_signal);
}
Interrupt::~Interrupt() { install(SIG_DFL); }
bool Interrupt::stopped() { return arrived != 0; }

}  // namespace clebsch::tool
