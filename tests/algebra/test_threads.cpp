// Tables are made when they are first asked for, by whichever thread that is. (The thread sanitizer runs this.)
#include <doctest/doctest.h>

#include <array>
#include <latch>
#include <thread>
#include <vector>

#include "algebra/harmonics.hpp"
#include "algebra/rotation.hpp"
#include "algebra/wigner.hpp"

using namespace clebsch;

TEST_CASE("several threads that ask for tables at once get the same ones") {
    constexpr std::size_t count = 4;
    struct Seen {
        std::vector<const CouplingEntry*> places;
        std::vector<double> numbers;
    };
    std::array<Seen, count> seen;
    std::latch start(count);
    std::vector<std::thread> threads;
    for (Seen& mine : seen)
        threads.emplace_back([&] {
            start.arrive_and_wait();
            for (int l = 7; l <= 9; ++l)  // degrees that no other test has asked for before
                for (const SignTable signs : {SignTable::e3nn_0_5, SignTable::e3nn_0_4}) {
                    const auto coupling = wigner_3j(l, l - 1, 3, signs);
                    mine.places.push_back(coupling.data());
                    for (const CouplingEntry& entry : coupling) mine.numbers.push_back(entry.value);
                }
            for (int l = 7; l <= 9; ++l) {
                for (const Monomial& monomial : harmonic_monomials(l)) mine.numbers.push_back(monomial.value);
                for (const RecurrenceEntry& entry : harmonic_recurrence(l)) mine.numbers.push_back(entry.value);
                const std::vector<double> d = wigner_d(Irrep{l, Parity::even}, rotation_matrix(Angles{0.1, 0.2, 0.3}));
                mine.numbers.insert(mine.numbers.end(), d.begin(), d.end());
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(seen[0].numbers.size() > 1000);
    for (const Seen& other : seen) {
        CHECK(other.numbers == seen[0].numbers);
        CHECK(other.places == seen[0].places);  // one table, not one each
    }
}
