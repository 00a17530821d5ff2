/*-------------------------------------------------------------------------
 *
 * reached.pml
 *	  Interesting states say so, once in each search.  test/check-model wants to
 *	  see each of them, so that no search is empty.
 *
 *-------------------------------------------------------------------------
 */

#define reached(what) \
	c_code { { static int seen; if (!seen++) printf("reached: %s\n", what); } }
