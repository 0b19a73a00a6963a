# nlohmann-json from the system, or from its PyPI package (which `pip install .` brings as a build requirement).
find_package(nlohmann_json QUIET)
if(NOT TARGET nlohmann_json::nlohmann_json)
  find_package(Python3 COMPONENTS Interpreter)
  if(Python3_Interpreter_FOUND)
    execute_process(COMMAND ${Python3_EXECUTABLE} -c "import nlohmann_json, os; print(os.path.dirname(nlohmann_json.__file__))"
      OUTPUT_VARIABLE json_package OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  find_path(CLEBSCH_JSON_INCLUDE nlohmann/json.hpp HINTS ${json_package}/include NO_CACHE)   # an isolated build's place changes
  if(NOT CLEBSCH_JSON_INCLUDE)
    message(FATAL_ERROR "nlohmann-json was not found: apt-get install nlohmann-json3-dev, or pip install nlohmann-json")
  endif()
  add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED GLOBAL)
  target_include_directories(nlohmann_json::nlohmann_json SYSTEM INTERFACE ${CLEBSCH_JSON_INCLUDE})
endif()
