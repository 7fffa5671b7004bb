/** The Channel API on the in-process provider of the test kit. */
package org.verbena.it.inprocess;
