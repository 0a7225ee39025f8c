# How this project makes its targets: one static library a folder, one program for the tests of a folder.
# Everything that all targets share (language, warnings, sanitizers, precompiled headers, ccache) is set here, once.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

option(MESHWRIGHT_WERROR "Look for warnings, each of them an error (the presets of those who develop set it)" OFF)
set(MESHWRIGHT_SANITIZE "" CACHE STRING "Sanitizers to build with, as for -fsanitize=")

find_program(MESHWRIGHT_CCACHE ccache)
if(MESHWRIGHT_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${MESHWRIGHT_CCACHE})
endif()

option(MESHWRIGHT_CHECKED "Check the bounds of the standard library's containers (the preset checked sets it, and keeps asserts)" OFF)
if(MESHWRIGHT_CHECKED)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
endif()

# Optimised binaries are hardened: checked buffers, stack protector, position-independent, relocations read-only before main.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT MESHWRIGHT_SANITIZE)
  include(CheckPIESupported)
  check_pie_supported(LANGUAGES CXX)
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong)
  add_link_options(-Wl,-z,relro,-z,now)
endif()

if(MESHWRIGHT_SANITIZE)
  add_compile_options(-fsanitize=${MESHWRIGHT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>) # g++ 12 takes std::regex's own states for uninitialised (GCC bug 105562)
  add_link_options(-fsanitize=${MESHWRIGHT_SANITIZE})
endif()

if(MESHWRIGHT_FUZZ) # all code counts the branches it takes; the targets' own link option brings libFuzzer's main
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

# One INTERFACE target carries the warning set; every target of ours links it PRIVATE. Looking for them takes a twentieth of compiling.
add_library(meshwright_warnings INTERFACE)
if(MESHWRIGHT_WERROR)
  target_compile_options(meshwright_warnings INTERFACE
    -Werror -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
    # g++ 12 sees overflows in std::string's own code that are not there (GCC bugs 105329, 105651).
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict$<SEMICOLON>-Wno-stringop-overflow$<SEMICOLON>-Wno-stringop-overread$<SEMICOLON>-Wno-array-bounds>)
else()
  target_compile_options(meshwright_warnings INTERFACE -w)
endif()

# Two precompiled headers for all: one for the libraries, one for the tests (which add Qt Test).
# A file that stays as it is keeps its time: else each change of a CMakeLists.txt would compile everything anew.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled.cpp CONTENT "// Carries the precompiled header that all targets share.\n")
set(MESHWRIGHT_PRECOMPILED
  <algorithm> <array> <cassert> <cstdint> <functional> <map> <memory> <numeric> <optional> <set> <span> <string>
  <string_view> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)

add_library(meshwright_precompiled STATIC ${CMAKE_BINARY_DIR}/precompiled.cpp)
target_precompile_headers(meshwright_precompiled PRIVATE ${MESHWRIGHT_PRECOMPILED})
find_package(fmt REQUIRED)
target_link_libraries(meshwright_precompiled PRIVATE fmt::fmt meshwright_warnings)

# The sources of a folder are compiled together: their headers are read once. What they keep to themselves has names of its own
# in the whole folder. The preset dev compiles each alone, so that one changed source is soon there, and so that each includes what it uses.
set(MESHWRIGHT_UNITY 0 CACHE STRING "How many sources of a folder are compiled together (the presets set it); 0: none")
if(MESHWRIGHT_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE ${MESHWRIGHT_UNITY})
endif()

# What Qt's moc makes of those of the sources that have a Q_OBJECT: moc_NAME.cpp of a header, which NAME.cpp includes at its end, and NAME.moc
# of a source. Compiled with the classes themselves, unlike what CMake's AUTOMOC makes; a file that gets its first Q_OBJECT is met when CMake
# runs again.
add_custom_target(moc_files) # all of them and nothing else: what clang-tidy needs to read the sources
function(meshwright_add_moc target)
  foreach(source ${ARGN})
    file(STRINGS ${source} objects REGEX "^ *Q_OBJECT" LIMIT_COUNT 1)
    if(objects)
      cmake_path(GET source STEM name)
      set(made ${CMAKE_CURRENT_BINARY_DIR}/${name}.moc)
      if(source MATCHES "[.]h$")
        set(made ${CMAKE_CURRENT_BINARY_DIR}/moc_${name}.cpp)
      endif()
      add_custom_command(OUTPUT ${made} COMMAND Qt6::moc -o ${made} ${CMAKE_CURRENT_SOURCE_DIR}/${source} DEPENDS ${source} VERBATIM)
      set_source_files_properties(${made} PROPERTIES HEADER_FILE_ONLY ON)
      target_sources(${target} PRIVATE ${made})
      list(APPEND all ${made})
    endif()
  endforeach()
  if(all AND NOT MESHWRIGHT_TESTS)
    add_custom_target(${target}_moc DEPENDS ${all})
    add_dependencies(moc_files ${target}_moc)
  endif()
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
endfunction()

# meshwright_add_library(core_sharding [UI] [SELDOM] SOURCES ... [ALONE sources...] PUBLIC targets... PRIVATE targets...)
# The library of one folder, with the alias meshwright::core_sharding. Headers are included by full path from the root. UI: it draws with
# Qt's widgets, and has their precompiled header. SELDOM: its code takes three hundredths of the time of a
# benchmark at most, so what counts is that compiling takes two fifths less. ALONE: sources that are never compiled with others, since types that they keep to themselves
# are members of a class that others see (g++ warns where it takes such a source for a header).
function(meshwright_add_library name)
  cmake_parse_arguments(ARG "UI;SELDOM" "" "SOURCES;ALONE;PUBLIC;PRIVATE" ${ARGN})
  set(target meshwright_${name})
  add_library(${target} STATIC ${ARG_SOURCES} ${ARG_ALONE})
  set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  add_library(meshwright::${name} ALIAS ${target})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} fmt::fmt meshwright_warnings)
  if(ARG_SELDOM AND CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE -Og $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>) # which g++ 12 sees in std::optional
  endif()
  if(ARG_UI)
    target_compile_definitions(${target} PRIVATE QT_NO_KEYWORDS)
    target_link_libraries(${target} PUBLIC Qt6::Widgets)
    meshwright_add_moc(${target} ${ARG_SOURCES} ${ARG_ALONE})
    target_precompile_headers(${target} REUSE_FROM meshwright_precompiled_ui)
  else()
    target_precompile_headers(${target} REUSE_FROM meshwright_precompiled)
  endif()
endfunction()

macro(meshwright_add_ui_library name)
  meshwright_add_library(${name} UI ${ARGN})
endmacro()

# The tests that the thread sanitizer runs, and no others.
add_custom_target(thread_tests)

# meshwright_add_test(tst_name [UI] [ENGINES] SOURCE file.cpp LIBS targets... [LABELS labels...])
# A class of tests. The classes of a folder are one program (tests/main.cpp), and each is run in a process of its own, so one crash does not
# hide the other tests. UI: run at scale 1 and at scale 2. ENGINES: run with virtual devices as threads, and as fibers. The time limit, of a
# class and of each of its functions, ends a test that hangs, and is far from what any takes on a busy computer.
function(meshwright_add_test name)
  cmake_parse_arguments(ARG "UI;ENGINES" "SOURCE" "LIBS;LABELS" ${ARGN})
  file(RELATIVE_PATH program ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  string(REPLACE "/" "_" program ${program})
  if(NOT TARGET ${program})
    add_executable(${program} ${PROJECT_SOURCE_DIR}/tests/main.cpp ${PROJECT_SOURCE_DIR}/tests/test_class.h)
    target_link_libraries(${program} PRIVATE meshwright::test_support meshwright::core_support)
    if(ARG_UI)
      target_link_libraries(${program} PRIVATE Qt6::Widgets)
      target_compile_definitions(${program} PRIVATE MESHWRIGHT_UI_TESTS)
      target_precompile_headers(${program} REUSE_FROM meshwright_precompiled_ui_tests)
    else()
      target_precompile_headers(${program} REUSE_FROM meshwright_precompiled_tests)
    endif()
  endif()
  target_sources(${program} PRIVATE ${ARG_SOURCE})
  meshwright_add_moc(${program} ${ARG_SOURCE})
  target_link_libraries(${program} PRIVATE ${ARG_LIBS})
  if("threads" IN_LIST ARG_LABELS)
    add_dependencies(thread_tests ${program})
  endif()
  set(scales 1)
  if(ARG_UI)
    set(scales 1 2)
    list(APPEND ARG_LABELS ui)
  endif()
  set(limit 900)
  if(MESHWRIGHT_SANITIZE)
    set(limit 3600)
  endif()
  set(engines any)
  if(ARG_ENGINES)
    set(engines threads)
    if(TARGET Boost::context)
      list(APPEND engines fibers)
    endif()
  endif()
  foreach(scale ${scales})
    foreach(engine ${engines})
      set(test ${name})
      set(environment QT_QPA_PLATFORM=offscreen QT_SCALE_FACTOR=${scale} LC_ALL=C.UTF-8 OPENBLAS_NUM_THREADS=1 MESHWRIGHT_VERIFY_PASSES=1
        QTEST_FUNCTION_TIMEOUT=${limit}000)
      if(ARG_UI)
        string(APPEND test _${scale}x)
      endif()
      if(NOT engine STREQUAL "any")
        string(APPEND test _${engine})
        list(APPEND environment MESHWRIGHT_ENGINE=${engine})
      endif()
      add_test(NAME ${test} COMMAND ${program} ${name})
      set_tests_properties(${test} PROPERTIES ENVIRONMENT "${environment}" TIMEOUT ${limit} LABELS "${ARG_LABELS}")
    endforeach()
  endforeach()
endfunction()

macro(meshwright_add_ui_test name)
  meshwright_add_test(${name} UI ${ARGN})
endmacro()
