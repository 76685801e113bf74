#define BOOST_TEST_MODULE longhand
#include <boost/test/unit_test.hpp>
