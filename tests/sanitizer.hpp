// STEPCAST_ASAN: AddressSanitizer is compiled in, by gcc (which defines a name) or clang.
#pragma once

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define STEPCAST_ASAN
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define STEPCAST_ASAN
#endif
