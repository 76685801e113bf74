#include "core/atomic_file.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <string>
#include "tests/check.h"

#include "core/error.h"
#include "core/mapped_file.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

BOOST_AUTO_TEST_SUITE(atomic_file_test)

using namespace longhand;

namespace {

std::string contents(const std::filesystem::path& path) {
  const MappedFile file(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

/// Limits the size of files to `bytes` while it exists. Writes beyond the limit fail, as they do on
/// a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_file_appears_only_on_commit_and_then_is_complete) {
  const TemporaryFolder folder;
  AtomicFile file(folder / "a.txt");
  file.write("one ");
  file.write(std::string(200'000, 'x'));
  file.write("\n");
  BOOST_TEST(!std::filesystem::exists(folder / "a.txt"));
  file.commit();
  BOOST_TEST(contents(folder / "a.txt") == "one " + std::string(200'000, 'x') + "\n");
  BOOST_TEST(folder.count() == 1);
  BOOST_CHECK_THROW(file.write("more"), Error);
  BOOST_CHECK_THROW(file.commit(), Error);
}

BOOST_AUTO_TEST_CASE(an_abandoned_file_leaves_the_old_file_and_no_temporary_file) {
  const TemporaryFolder folder;
  write_atomically(folder / "a.txt", "old");
  {
    AtomicFile file(folder / "a.txt");
    file.write("new");
  }
  BOOST_TEST(contents(folder / "a.txt") == "old");
  BOOST_TEST(folder.count() == 1);
  write_atomically(folder / "a.txt", "new");
  BOOST_TEST(contents(folder / "a.txt") == "new");
}

BOOST_AUTO_TEST_CASE(a_full_disk_leaves_the_old_file_and_no_temporary_file) {
  const TemporaryFolder folder;
  write_atomically(folder / "a.txt", "old");
  for (const std::size_t size : {std::size_t{5000}, std::size_t{1} << 20}) {
    const FileSizeLimit limit(4096);
    BOOST_TEST(refusal([&] { write_atomically(folder / "a.txt", std::string(size, 'x')); }) ==
               (folder / "a.txt").string() + ": cannot write: File too large");
    BOOST_TEST(contents(folder / "a.txt") == "old");
    BOOST_TEST(folder.count() == 1);
  }
}

BOOST_AUTO_TEST_CASE(a_target_that_cannot_be_created_is_refused) {
  const TemporaryFolder folder;
  BOOST_CHECK_THROW(AtomicFile(folder / "missing/a.txt"), Error);
  BOOST_CHECK_THROW(AtomicFile(folder / ""), Error);
  std::filesystem::create_directory(folder / "taken");
  BOOST_CHECK_THROW(write_atomically(folder / "taken", "x"), Error);
  BOOST_TEST(folder.count() == 1);
}

BOOST_AUTO_TEST_CASE(a_new_file_has_the_default_permissions) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(027);
  write_atomically(folder / "a.txt", "x");
  ::umask(before);
  struct stat status {};
  ::stat((folder / "a.txt").c_str(), &status);
  BOOST_TEST((status.st_mode & 0777) == 0640u);
}

BOOST_AUTO_TEST_CASE(only_regular_files_can_be_mapped) {
  const TemporaryFolder folder;
  write_atomically(folder / "empty", "");
  BOOST_TEST(MappedFile(folder / "empty").bytes().empty());
  BOOST_CHECK_THROW(MappedFile(folder.path()), Error);
  BOOST_CHECK_THROW(MappedFile(folder / "missing"), Error);
  BOOST_CHECK_THROW(MappedFile("/dev/zero"), Error);
}

BOOST_AUTO_TEST_CASE(a_mapping_survives_being_moved_and_its_file_being_replaced) {
  const TemporaryFolder folder;
  write_atomically(folder / "a.txt", "old");
  MappedFile first(folder / "a.txt");
  const auto bytes = first.bytes();
  const MappedFile second = std::move(first);
  write_atomically(folder / "a.txt", "new and longer");
  BOOST_TEST(second.bytes().data() == bytes.data());
  BOOST_TEST(std::to_integer<char>(second.bytes()[2]) == 'd');
}

BOOST_AUTO_TEST_SUITE_END()
