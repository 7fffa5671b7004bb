/** The whole stack on the verbs provider, on a library that connects queue pairs in one process without a device. */
package org.verbena.it.verbs;
