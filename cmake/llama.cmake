# Fetches, verifies, builds and imports llama.cpp.
#
# The source comes from the archive of the pinned PyPI package below (pip is only the download client).
# It is unpacked and built under SPOOL_CACHE_DIR, keyed by everything that changes the result, so that
# deleting spool's build folder never rebuilds it. Defines the imported targets llama, llama-common,
# ggml, ggml-base and LLAMA_SIMPLE (llama.cpp's own example program, a benchmark peer).
set(LLAMA_PACKAGE "llama-cpp-python")
set(LLAMA_VERSION "0.3.36")
set(LLAMA_SHA256 "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e")

if(DEFINED ENV{SPOOL_CACHE_DIR})
    set(default_cache "$ENV{SPOOL_CACHE_DIR}")
elseif(DEFINED ENV{XDG_CACHE_HOME})
    set(default_cache "$ENV{XDG_CACHE_HOME}/spool")
else()
    set(default_cache "$ENV{HOME}/.cache/spool")
endif()
set(SPOOL_CACHE_DIR "${default_cache}" CACHE PATH "where llama.cpp's source and build are kept")
set(SPOOL_GGML_OPTIONS "" CACHE STRING "further -D options for llama.cpp, e.g. -DGGML_CUDA=ON;-DGGML_RPC=ON")

set(archive_name "llama_cpp_python-${LLAMA_VERSION}.tar.gz")
set(archive "${SPOOL_CACHE_DIR}/download/${archive_name}")
if(NOT EXISTS "${archive}")
    find_program(PYTHON3 python3 REQUIRED)
    message(STATUS "Fetching ${LLAMA_PACKAGE} ${LLAMA_VERSION} (77 MB)")
    execute_process(
        COMMAND "${PYTHON3}" -m pip download --quiet --no-deps --no-binary ${LLAMA_PACKAGE}
                --dest "${SPOOL_CACHE_DIR}/download/partial" ${LLAMA_PACKAGE}==${LLAMA_VERSION}
        RESULT_VARIABLE failed)
    if(failed)
        message(FATAL_ERROR "pip could not download ${LLAMA_PACKAGE}==${LLAMA_VERSION}. Run scripts/deps "
                            "first, check the network, or place ${archive_name} in "
                            "${SPOOL_CACHE_DIR}/download yourself.")
    endif()
    file(RENAME "${SPOOL_CACHE_DIR}/download/partial/${archive_name}" "${archive}")
endif()
file(SHA256 "${archive}" archive_sha256)
if(NOT archive_sha256 STREQUAL LLAMA_SHA256)
    message(FATAL_ERROR "${archive}: SHA-256 is ${archive_sha256}, expected ${LLAMA_SHA256}. Delete it and "
                        "configure again.")
endif()

set(LLAMA_CPP_SOURCE
    "${SPOOL_CACHE_DIR}/source/llama_cpp_python-${LLAMA_VERSION}/vendor/llama.cpp")
if(NOT EXISTS "${LLAMA_CPP_SOURCE}/include/llama.h")
    message(STATUS "Unpacking ${archive_name}")
    file(ARCHIVE_EXTRACT INPUT "${archive}" DESTINATION "${SPOOL_CACHE_DIR}/source"
         PATTERNS "*/vendor/llama.cpp/*")
endif()

# -march=native means another instruction set on another machine: the key holds what it resolves to.
execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -march=native -dM -E -x c++ /dev/null
                OUTPUT_VARIABLE native_macros ERROR_QUIET)
file(READ "${CMAKE_CURRENT_LIST_DIR}/llama/CMakeLists.txt" wrapper)
string(SHA256 key "${LLAMA_SHA256} ${wrapper} ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} \
${SPOOL_GGML_OPTIONS} ${native_macros}")
string(SUBSTRING "${key}" 0 12 key)
set(LLAMA_BUILD "${SPOOL_CACHE_DIR}/llama-${LLAMA_VERSION}-${key}")

if(NOT EXISTS "${LLAMA_BUILD}/complete")
    message(STATUS "Building llama.cpp once, into ${LLAMA_BUILD} (several minutes on two cores)")
    find_program(CCACHE ccache)
    set(launcher "")
    if(CCACHE)
        set(launcher "-DCMAKE_C_COMPILER_LAUNCHER=${CCACHE}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${CCACHE}")
    endif()
    execute_process(
        COMMAND "${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/llama" -B "${LLAMA_BUILD}" -G Ninja
                -DCMAKE_BUILD_TYPE=Release "-DLLAMA_CPP_SOURCE=${LLAMA_CPP_SOURCE}"
                "-DCMAKE_C_COMPILER=${CMAKE_C_COMPILER}" "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}"
                ${launcher} ${SPOOL_GGML_OPTIONS}
        OUTPUT_FILE "${SPOOL_CACHE_DIR}/configure.log" RESULT_VARIABLE failed)
    if(failed)
        message(FATAL_ERROR "llama.cpp did not configure; see ${SPOOL_CACHE_DIR}/configure.log")
    endif()
    execute_process(COMMAND "${CMAKE_COMMAND}" --build "${LLAMA_BUILD}" --target spool-llama
                    RESULT_VARIABLE failed)
    if(failed)
        message(FATAL_ERROR "llama.cpp did not build; the compiler's messages are above")
    endif()
    file(TOUCH "${LLAMA_BUILD}/complete")
endif()

include("${LLAMA_BUILD}/llama-targets.cmake")
set(LLAMA_SIMPLE "${LLAMA_BUILD}/bin/llama-simple" CACHE FILEPATH "llama.cpp's own example program, a benchmark peer" FORCE)
