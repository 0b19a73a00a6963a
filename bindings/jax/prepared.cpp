#include "prepared.hpp"

#include <cstring>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace clebsch_jax {
namespace {

struct Key {
    std::array<char, 32> hash;
    int dtype, device;
    bool deterministic;
    bool operator==(const Key&) const = default;
};
struct HashOfKey {
    std::size_t operator()(const Key& key) const {
        std::size_t digits = 0;
        std::memcpy(&digits, key.hash.data(), sizeof digits);
        return digits * 31 + static_cast<std::size_t>((key.dtype * 1024 + key.device) * 2 + (key.deterministic ? 1 : 0));
    }
};

struct Table {
    std::shared_mutex access;
    std::mutex preparing;  // one at a time: two calls of one new operation prepare it once
    std::unordered_map<Key, std::unique_ptr<const Prepared>, HashOfKey> entries;

    const Prepared* find(const Key& key) {
        const std::shared_lock lock(access);
        const auto found = entries.find(key);
        return found == entries.end() ? nullptr : found->second.get();
    }
};

Table& table() {
    static auto& only = *new Table;  // never destroyed: XLA's threads may outlive static objects
    return only;
}

struct DestroyOperation {
    void operator()(clebsch_operation* operation) const { clebsch_operation_destroy(operation); }
};

std::unique_ptr<Prepared> prepare(const Request& request) {
    clebsch_operation* handle = nullptr;
    check(clebsch_operation_parse(std::string(request.text).c_str(), &handle));
    const std::unique_ptr<clebsch_operation, DestroyOperation> operation(handle);
    auto result = std::make_unique<Prepared>();
    result->dtype = request.dtype;
    result->spaces = clebsch_operation_space_count(handle);
    for (std::size_t i = 0; i < clebsch_operation_operand_count(handle); ++i) {
        clebsch_operand_info info = CLEBSCH_OPERAND_INFO_DEFAULTS;
        check(clebsch_operation_operand(handle, i, &info));
        result->operands.push_back({info.is_output != 0, info.space, info.row_size});
        ++(info.is_output != 0 ? result->outputs : result->inputs);
    }
    for (std::size_t i = 0; i < clebsch_operation_index_count(handle); ++i) {
        const char* name = nullptr;
        int from = 0, to = 0, sorted = 0;
        check(clebsch_operation_index(handle, i, &name, &from, &to, &sorted));
        result->indices.push_back({from, to});
    }
    const std::string device = request.device == host ? "cpu" : "cuda:" + std::to_string(request.device);
    clebsch_plan_options options = CLEBSCH_PLAN_OPTIONS_DEFAULTS;
    options.dtype = request.dtype;
    options.device = device.c_str();
    options.deterministic = request.deterministic && request.device != host ? 1 : 0;
    options.nan_if_unsorted = request.device != host ? 1 : 0;  // no error can come from there
    check(clebsch_plan_prepare(handle, &options, &result->plan));
    return result;
}

}  // namespace

void check(clebsch_status status) {
    if (status != CLEBSCH_OK) throw Failure(status, clebsch_last_error());
}

std::size_t Prepared::workspace_bytes(const std::vector<std::int64_t>& rows) const {
    std::size_t bytes = 0;
    check(clebsch_plan_workspace_size(plan, rows.data(), rows.size(), 0, &bytes));
    return bytes;
}

const Prepared& prepared(const Request& request) {
    Key key{{}, request.dtype, request.device, request.deterministic};
    if (request.hash.size() != key.hash.size())
        throw Failure(CLEBSCH_INTERNAL_ERROR, "the operation's hash has " + std::to_string(request.hash.size()) + " digits, expected 32");
    std::memcpy(key.hash.data(), request.hash.data(), key.hash.size());
    Table& all = table();
    if (const Prepared* found = all.find(key)) return *found;
    const std::scoped_lock alone(all.preparing);
    if (const Prepared* found = all.find(key)) return *found;
    std::unique_ptr<const Prepared> made = prepare(request);
    const std::unique_lock lock(all.access);
    return *all.entries.emplace(key, std::move(made)).first->second;
}

}  // namespace clebsch_jax
