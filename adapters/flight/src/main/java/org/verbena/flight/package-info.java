/** Tests of Arrow Flight over {@code verbena-grpc}, which is all that it needs. They are all under {@code src/test}. */
@NullMarked
package org.verbena.flight;

import org.jspecify.annotations.NullMarked;
