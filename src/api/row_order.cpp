// Rows in the order of an index, once for many launches; and waiting for a stream.
#include <filesystem>
#include <memory>

#include "api/guard.hpp"
#include "run/gpu/driver.hpp"
#include "run/gpu/row_order.hpp"
#include "run/gpu/store.hpp"
#include "run/sorted_rows.hpp"

using namespace clebsch;
using api::guarded;
using api::require;

struct clebsch_row_order {
    SortedRows sorted;                         ///< on the processor
    std::unique_ptr<gpu::Memory> memory = {};  ///< on a GPU
    std::int64_t rows = 0;
};

namespace {

std::unique_ptr<clebsch_row_order> order_on_gpu(int number, const IndexBuffer& index, std::int64_t target_rows) {
    const gpu::Device& device = gpu::Device::get(number);
    if (target_rows < 0) fail("target_rows: expected at least 0, got " + std::to_string(target_rows));
    if (index.size > 0) require(index.data, "index.data");
    auto order = std::make_unique<clebsch_row_order>();
    order->rows = index.size;
    if (index.size == 0) return order;
    const gpu::RowOrder sort(device, 1);
    order->memory = std::make_unique<gpu::Memory>(device, gpu::RowOrder::bytes(index.size));
    const gpu::Memory error(device, sizeof(std::uint64_t));
    std::uint64_t flag = 0;
    device.to_device(error.data(), &flag, sizeof flag);
    sort.launch({&index, 1}, {&target_rows, 1}, index.size, order->memory->data(), error.data(), nullptr);
    device.from_device(&flag, error.data(), sizeof flag);
    if (flag != 0) fail("index: expected -1 or a row below " + std::to_string(target_rows) + " everywhere");
    return order;
}

}  // namespace

clebsch_status clebsch_row_order_create(const char* device, const clebsch_index_buffer* index, int64_t target_rows,
                                        clebsch_row_order** order) {
    return guarded([&] {
        require(index, "index");
        require(order, "order");
        if (index->type != CLEBSCH_INT32 && index->type != CLEBSCH_INT64)
            fail("index.type: expected 0 (int32) or 1 (int64), got " + std::to_string(index->type));
        if (index->count < 0) fail("index.count: expected at least 0, got " + std::to_string(index->count));
        const IndexBuffer given{index->data, static_cast<IndexType>(index->type), index->count};
        const std::optional<int> number = device == nullptr ? std::nullopt : gpu::parse_device(device, "device");
        if (number) {
            *order = order_on_gpu(*number, given, target_rows).release();
            return;
        }
        *order =
            std::make_unique<clebsch_row_order>(clebsch_row_order{.sorted = sorted_rows(given, target_rows), .rows = given.size}).release();
    });
}

clebsch_status clebsch_row_order_indices(const clebsch_row_order* order, clebsch_index_buffer* rows, clebsch_index_buffer* sorted) {
    return guarded([&] {
        require(order, "order");
        require(rows, "rows");
        require(sorted, "sorted");
        *rows = {order->sorted.rows.data(), CLEBSCH_INT64, order->rows};
        *sorted = {order->sorted.targets.data(), CLEBSCH_INT64, order->rows};
        if (order->memory == nullptr) return;
        const gpu::RowOrder::Result result = gpu::RowOrder::result(order->memory->data(), order->rows);
        rows->data = result.rows.data;
        sorted->data = result.targets.data;
    });
}

void clebsch_row_order_destroy(clebsch_row_order* order) { delete order; }

clebsch_status clebsch_stream_synchronize(const char* device, void* stream) {
    return guarded([&] {
        require(device, "device");
        const std::optional<int> number = gpu::parse_device(device, "device");
        if (!number) fail("device: expected cuda or cuda:NUMBER, got '" + std::string(device) + "'");
        gpu::Device::get(*number).synchronize(stream);
    });
}

clebsch_status clebsch_add_kernel_folder(const char* path) {
    return guarded([&] {
        require(path, "path");
        if (!std::filesystem::is_directory(path))
            throw Error(ErrorKind::not_found, "kernel folder: " + std::string(path) + " is no folder");
        gpu::add_prebuilt_folder(path);
    });
}
