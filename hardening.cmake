# What makes a mistake in memory end the program instead of serving whoever caused it: for every
# program and module, where the compiler knows it. tests/house/hardening.sh reads it off what was
# built. None of it touches arithmetic. Why not -fsanitize=cfi: DESIGN.md.
include(CheckCXXCompilerFlag)
include(CheckCXXSourceCompiles)

# Position-independent programs, so that addresses differ from run to run; what goes into a shared
# object is position-independent code already.
add_compile_options(
  "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<BOOL:$<TARGET_PROPERTY:POSITION_INDEPENDENT_CODE>>>>:-fPIE>")
add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fPIE>)
add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie>
  -Wl,-z,relro,-z,now,-z,noexecstack)

foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection)
  string(MAKE_C_IDENTIFIER STEPCAST_HAS${flag} known)
  check_cxx_compiler_flag(${flag} ${known})
  if(${known})
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:${flag}>)
  endif()
endforeach()

# Checked strings and reads of libc: they need optimisation, and sanitizers check more themselves.
set(CMAKE_TRY_COMPILE_CONFIGURATION ${CMAKE_BUILD_TYPE})
check_cxx_source_compiles("
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__)
#error
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#error
#endif
#endif
int main() {}" STEPCAST_FORTIFIES)
unset(CMAKE_TRY_COMPILE_CONFIGURATION)
if(STEPCAST_FORTIFIES)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-U_FORTIFY_SOURCE>
    $<$<COMPILE_LANGUAGE:CXX>:-D_FORTIFY_SOURCE=3>)  # glibc takes 3 for 2 where it knows no 3
endif()
