# Arrow and Parquet from pyarrow's wheel, which carries their headers and libraries: `pip install pyarrow`, then
# configure with -DSPOOL_PARQUET=ON and, unless it is the Python that CMake finds, -DPython3_EXECUTABLE=...
find_package(Python3 COMPONENTS Interpreter QUIET)
execute_process(COMMAND "${Python3_EXECUTABLE}" -c "import pyarrow; print(pyarrow.get_library_dirs()[0])"
                OUTPUT_VARIABLE SPOOL_PYARROW OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(GLOB parquet_libraries "${SPOOL_PYARROW}/libparquet.so*" "${SPOOL_PYARROW}/libarrow.so*"
     "${SPOOL_PYARROW}/libparquet.*.dylib" "${SPOOL_PYARROW}/libarrow.*.dylib")
if(NOT SPOOL_PYARROW OR NOT parquet_libraries)
    message(FATAL_ERROR "SPOOL_PARQUET needs pyarrow 26 or newer: pip install pyarrow, then -DPython3_EXECUTABLE=PYTHON")
endif()
add_library(parquet INTERFACE)
target_include_directories(parquet SYSTEM INTERFACE "${SPOOL_PYARROW}/include")
target_link_libraries(parquet INTERFACE ${parquet_libraries})
