// The one translation unit that compiles Asio and Beast (BOOST_*_SEPARATE_COMPILATION is set for all that use them).
#include <boost/asio/impl/src.hpp>
#include <boost/beast/src.hpp>
