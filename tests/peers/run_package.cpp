// Runs a packaged model without Python: run_package PACKAGE LIBRARY INPUTS OUTPUTS. LIBRARY (libclebsch_torch.so) registers the operator;
// inputs and outputs are files of tensors as torch.save and torch::save of a list write them.
#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/script.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

int main(int count, char** arguments) {
    if (count != 5) return 2;
    if (dlopen(arguments[2], RTLD_NOW | RTLD_GLOBAL) == nullptr) {
        std::fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    torch::inductor::AOTIModelPackageLoader model(arguments[1]);
    std::ifstream file(arguments[3], std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const c10::IValue loaded = torch::jit::pickle_load(bytes);
    std::vector<at::Tensor> inputs;
    for (const c10::IValue& value : loaded.toListRef()) inputs.push_back(value.toTensor());
    const std::vector<at::Tensor> outputs = model.run(inputs);
    const std::vector<char> result = torch::jit::pickle_save(c10::IValue(outputs));
    std::ofstream(arguments[4], std::ios::binary).write(result.data(), static_cast<std::streamsize>(result.size()));
    return 0;
}
