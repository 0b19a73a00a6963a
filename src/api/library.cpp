#include "api/library.hpp"

#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "api/guard.hpp"
#include "describe/operations/registry.hpp"
#include "graph/vesin.hpp"
#include "schedule/cpu_target.hpp"

namespace clebsch::api {
namespace {

std::mutex pool_mutex;
std::shared_ptr<ThreadPool>& pool_of_process() {
    static std::shared_ptr<ThreadPool> pool;  // never destroyed by a launch in flight: launches hold a reference
    return pool;
}

}  // namespace

std::shared_ptr<ThreadPool> current_pool() {
    const std::scoped_lock lock(pool_mutex);
    std::shared_ptr<ThreadPool>& pool = pool_of_process();
    if (pool == nullptr) pool = std::shared_ptr<ThreadPool>(&default_pool(), [](ThreadPool*) {});
    return pool;
}

}  // namespace clebsch::api

using namespace clebsch;
using api::guarded;
using api::require;
using nlohmann::json;

clebsch_status clebsch_set_num_threads(int threads) {
    return guarded([&] {
        if (threads < 0 || threads > 1024) fail("threads: expected 0 (one per core) to 1024, got " + std::to_string(threads));
        const int count = threads == 0 ? std::max(1, static_cast<int>(std::thread::hardware_concurrency())) : threads;
        auto pool = std::make_shared<ThreadPool>(count);
        const std::scoped_lock lock(api::pool_mutex);
        api::pool_of_process().swap(pool);
    });
}

clebsch_status clebsch_force_instruction_set(const char* name) {
    return guarded([&] {
        require(name, "name");
        if (*name == '\0') force_instruction_set(std::nullopt);
        else force_instruction_set(parse_instruction_set(name));
    });
}

clebsch_status clebsch_info(char** text) {
    return guarded([&] {
        require(text, "json");
        json info;
        info["version"] = clebsch_version();
        info["threads"] = api::current_pool()->threads();
        info["instruction_set"] = to_text(default_instruction_set());
        for (const InstructionSet isa : available_instruction_sets()) info["instruction_sets"].push_back(to_text(isa));
        const VesinStatus vesin = vesin_status();
        info["vesin"] = {{"found", vesin.found}, {"detail", vesin.text}};
        *text = api::copy_text(info.dump(2));
    });
}

clebsch_status clebsch_builders(char** text) {
    return guarded([&] {
        require(text, "json");
        json list = json::object();
        for (const OperationInfo& operation : operations()) {
            json options = json::object();
            for (const OptionInfo& option : operation.options) {
                json entry = {{"type", option.type}, {"help", option.help}, {"required", option.required}};
                if (!option.required) entry["default"] = option.default_value;
                if (!option.choices.empty()) entry["choices"] = option.choices;
                options[option.name] = entry;
            }
            list[operation.name] = {{"help", operation.help}, {"options", options}};
        }
        *text = api::copy_text(list.dump(2));
    });
}
