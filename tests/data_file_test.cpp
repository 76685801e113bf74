#include "core/data_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include "tests/check.h"

#include "core/atomic_file.h"
#include "core/bus_errors.h"
#include "core/crc32c.h"
#include "core/mapped_file.h"
#include "tests/contents.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

namespace data_file_test {

using namespace longhand;
namespace fs = std::filesystem;

struct Fixture {
  TemporaryFolder folder;
  fs::path path = folder / "data";
  std::string bytes = std::string(3 << 20, 'a') + "end";

  Fixture() { write_atomically(path, bytes); }

  static std::string read(const DataFile& file, std::uint64_t begin, std::size_t count) {
    std::string text(count, ' ');
    file.read(begin, std::as_writable_bytes(std::span(text)));
    return text;
  }
  /// Overwrites a byte in place, as another program might.
  void overwrite(std::size_t at, char c) const {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(c);
  }
  /// Waits longer than the resolution of file times, which is the system's clock tick.
  static void wait_for_a_tick() { ::usleep(20'000); }
};

}  // namespace data_file_test

BOOST_FIXTURE_TEST_SUITE(data_file_test, Fixture)

BOOST_AUTO_TEST_CASE(bytes_are_read_by_position_and_have_a_checksum) {
  const DataFile file(path);
  BOOST_TEST(file.size() == bytes.size());
  BOOST_TEST(file.sum().crc == crc32c(bytes));
  BOOST_TEST(read(file, bytes.size() - 4, 4) == "aend");
  BOOST_TEST(read(file, bytes.size(), 0) == "");
  BOOST_TEST(
      contains(refusal([&] { read(file, bytes.size() - 1, 2); }), "expected a range within the"));
  write_atomically(folder / "empty", "");
  BOOST_TEST(DataFile(folder / "empty").size() == 0u);
}

BOOST_AUTO_TEST_CASE(the_next_read_fails_if_the_file_was_changed_in_place) {
  const auto changes = [&](auto change) {
    write_atomically(path, bytes);
    const DataFile file(path);
    read(file, 0, 9);
    wait_for_a_tick();
    change();
    for (int i = 0; i < 2; ++i) {
      BOOST_TEST(refusal([&] { read(file, 0, 9); }) ==
                 path.string() + ": was changed while it was in use");
    }
  };
  changes([&] { fs::resize_file(path, 4); });
  changes([&] { fs::resize_file(path, 100); });
  changes([&] { fs::resize_file(path, bytes.size() + 1); });
  changes([&] { overwrite(2 << 20, 'b'); });
  changes([&] {  // changes the contents and restores the old modification time
    const auto time = fs::last_write_time(path);
    overwrite(2 << 20, 'b');
    fs::last_write_time(path, time);
  });
}

BOOST_AUTO_TEST_CASE(a_changed_time_or_a_new_file_of_the_same_name_is_no_error) {
  const DataFile file(path);
  wait_for_a_tick();
  fs::last_write_time(path, fs::file_time_type::clock::now());
  fs::permissions(path, fs::perms::owner_read);
  BOOST_TEST(read(file, bytes.size() - 4, 4) == "aend");
  write_atomically(path, "another");
  BOOST_TEST(read(file, bytes.size() - 4, 4) == "aend");
  BOOST_TEST(DataFile(path).size() == 7u);
}

BOOST_AUTO_TEST_CASE(names_that_are_not_files_are_refused) {
  BOOST_TEST(contains(refusal([&] { DataFile(folder / "absent"); }), "No such file"));
  BOOST_TEST(contains(refusal([&] { DataFile(folder.path()); }), "got a folder"));
  BOOST_REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  BOOST_TEST(contains(refusal([&] { DataFile(folder / "pipe"); }), "expected a file, got a pipe"));
}

BOOST_AUTO_TEST_CASE(a_mapped_file_that_is_cut_short_ends_the_process_with_one_line) {
  const MappedFile mapped(path);
  const pid_t child = ::fork();
  if (child == 0) {
    const int said = ::open((folder / "said").c_str(), O_WRONLY | O_CREAT, 0600);
    ::dup2(said, STDERR_FILENO);
    explain_bus_errors();
    fs::resize_file(path, 1);
    volatile std::byte byte = mapped.bytes().back();
    static_cast<void>(byte);
    ::_exit(0);
  }
  int status = 0;
  BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
  BOOST_TEST(WIFEXITED(status));
  BOOST_TEST(WEXITSTATUS(status) == 1);
  BOOST_TEST(contents(folder / "said") ==
             "longhand: " + path.string() +
                 ": was cut short by another program while it was read\n");
}

BOOST_AUTO_TEST_SUITE_END()
