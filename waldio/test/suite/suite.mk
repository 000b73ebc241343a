# Builds testfixture-waldio in a directory where SQLite's configure has been run:
#
#     make -C BUILD -f .../waldio/test/suite/suite.mk testfixture-waldio
#
# It is SQLite's testfixture, with the same flags, and waldio linked in.  The
# tests' own VFSes that lose, fail or count writes are compiled so that they come
# to stand below waldio; see init.c.

suite := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
include Makefile

# Newer SQLites have T.cc.sqlite, and Tcl's flags in a file to be sourced.
suite_compiler = $(or $(TCC),. $(T.tcl.env.sh); $(T.cc.sqlite) $$$$TCL_INCLUDE_SPEC)
suite_libs = $(or $(LIBTCL),$$$$TCL_LIB_SPEC $$$$TCL_LIBS $(LDFLAGS.libsqlite3)) \
             $(TLIBS) -lpthread -ldl
suite_below := test6 test_devsym test_journal test_vfs
suite_obj = $(patsubst %.c,suite-%.o,$(notdir $(TESTFIXTURE_SRC)))
suite_cc = $(suite_compiler) -w -DSQLITE_NO_SYNC=1 $(TEMP_STORE) $(TESTFIXTURE_FLAGS) \
           -DSQLITE_EXTRA_INIT=waldio_suite_init

# $(1): a source file of SQLite's
define suite_rule
suite-$(notdir $(1:.c=.o)): $(1) sqlite3.c | $(T.tcl.env.sh)
	$(suite_cc) $$(suite_flags) -c -o $$@ $$<
endef
$(foreach source,$(TESTFIXTURE_SRC),$(eval $(call suite_rule,$(source))))

$(suite_below:%=suite-%.o): suite_flags := -Dsqlite3_vfs_register=suite_vfs_register \
    -Dsqlite3_vfs_unregister=suite_vfs_unregister -Dsqlite3_vfs_find=suite_vfs_find

define suite_program
suite-init.o: $(suite)init.c $(suite)../../waldio.c $(suite)../../waldio.h sqlite3.c \
              | $(T.tcl.env.sh)
	$(suite_compiler) -DSQLITE_CORE -I$(suite)../.. -c -o $$@ $$<

testfixture-waldio: $(suite_obj) suite-init.o
	$(suite_compiler) -o $$@ $$^ $(suite_libs)
endef
$(eval $(suite_program))
